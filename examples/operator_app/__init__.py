"""An operator for Sites: ``python -m examples.operator_app``.

::

    app                the operator
    delivery_network   the world outside of the cluster, for which a Site has a finalizer
    crd.yaml           the definition of a Site, for a server
"""
