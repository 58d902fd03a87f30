"""Operators: the declaration of a controller, and the health of an ``Operator``.

An operator is a whole program around controllers, from the connection to the exit code::

    Operator ──▶ ControllerBuilder ──▶ Controller (one for each term of leadership)
             ──▶ OperatorRun: client, informers, Events, leader election
             ──▶ process: signals, exit codes      probe_server: probes and metrics

Example::

    from aioinformer.operator import ControllerBuilder, OperatorHealth

    operator = Operator(client, namespace="web")

    async def reconcile(key: ObjectKey, run: ReconcileContext) -> None: ...

    builder: ControllerBuilder = operator.controller("deployments", reconcile, name="shops")
    health: OperatorHealth = operator.health
    print(health.state, health.error)
"""

from aioinformer.operator.builder import ControllerBuilder
from aioinformer.operator.health import OperatorHealth

__all__ = ["ControllerBuilder", "OperatorHealth"]
