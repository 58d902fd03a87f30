"""The operator of ``examples/operator_app`` in other frameworks, and a life of a Site under each.

::

    without_operator     this library's parts, without ``Operator``
    with_kopf            kopf
    controller_runtime   controller-runtime, in Go
    kube_rs              kube-rs, in Rust
    programs             the commands that build and run them
    life                 the steps of a Site's life, and what each program does in them

``python -m examples.operators_compared`` runs all of them on an API server in memory.
"""
