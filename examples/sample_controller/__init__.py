"""A controller for ``Foo`` objects, the counterpart of Kubernetes' own sample-controller.

::

    kinds        what there is: Foo, and Workload in the place of a Deployment
    desired      what a Foo asks for, as pure functions
    reconciler   from what is to what should be, one Foo at a time
    replica      one of several copies of the program: waits to lead, then runs the controller
    settings     how to run it, from the command line

``python -m examples.sample_controller`` runs it; the README beside this says how.
"""
