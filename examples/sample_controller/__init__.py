"""A controller for ``Foo`` objects, the counterpart of Kubernetes' own sample-controller.

::

    kinds        the objects: Foo, and Workload in place of a Deployment
    desired      the wanted state of a Foo, as pure functions
    reconciler   one reconcile: from the actual to the wanted state of one Foo
    replica      one of several copies of the program: waits to lead, then runs the controller
    settings     the command line

``python -m examples.sample_controller`` runs it; the README in this folder explains how.
"""
