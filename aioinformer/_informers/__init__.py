"""Informers as programs hold them: ``SharedInformer``, its factory and their options.

This package attaches the features of an informer: ``features`` lists those that an option asks for,
the factory attaches several namespaces, and the first ``verify()`` the comparison with the server.
``aioinformer._runtime.informer`` runs an informer, and knows no feature by name.
"""
