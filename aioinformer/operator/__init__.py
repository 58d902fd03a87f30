"""Operators: the declaration of a controller, and the health of an ``Operator``.

An operator is a whole program around controllers, from the connection to the exit code::

    Operator ──▶ ControllerBuilder ──▶ Controller (one for each term of leadership)
             ──▶ OperatorRun: client, informers, Events, leader election
             ──▶ process: signals, exit codes      probe_server: probes and metrics

Example::

    from aioinformer.operator import ControllerBuilder, OperatorHealth

    async def reconcile(key: ObjectKey, run: ReconcileContext) -> None: ...

    operator = Operator(client, name="shop-operator", namespace="web")
    builder: ControllerBuilder = operator.controller("deployments", reconcile)
    health: OperatorHealth = operator.health
    assert health.error is None
"""

from aioinformer.operator.builder import ControllerBuilder
from aioinformer.operator.health import OperatorHealth

__all__ = ["ControllerBuilder", "OperatorHealth"]
