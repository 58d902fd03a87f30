"""A controller for ``Foo`` objects, the counterpart of Kubernetes' own sample-controller.

::

    kinds        the objects: Foo, and Workload in place of a Deployment
    controller   one reconcile, from the actual to the wanted state of one Foo, and the operator
    settings     the command line

``python -m examples.sample_controller`` runs it; the README in this folder explains how.
"""
