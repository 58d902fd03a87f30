"""Informers as programs hold them: ``SharedInformer``, its factory and their options.

This package lists the features that an informer can have, and turns the options of a program into
them. ``aioinformer._runtime.informer`` runs an informer, and knows no feature by name.
"""
