"""Operators: the options and the health of an ``Operator``, and the declaration of a controller.

An operator is a whole program around controllers, from the connection to the exit code::

    Operator ──▶ ControllerBuilder ──▶ Controller (one for each term of leadership)
             ──▶ OperatorRun: client, informers, Events, leader election
             ──▶ process: signals, exit codes      probe_server: probes and metrics

Example::

    from aioinformer.operator import ControllerBuilder, OperatorHealth, OperatorOptions

    async def reconcile(key: ObjectKey, run: ReconcileContext) -> None: ...

    defaults = OperatorOptions(name="shop-operator")  # an Operator takes them as keywords
    assert (defaults.lease_duration, defaults.shutdown_timeout) == (15.0, 25.0)

    operator = Operator(client, name="shop-operator", namespace="web")
    builder: ControllerBuilder = operator.controller("deployments", reconcile)
    health: OperatorHealth = operator.health
    assert health.error is None
"""

from aioinformer.operator.builder import ControllerBuilder
from aioinformer.operator.health import OperatorHealth
from aioinformer.operator.options import OperatorOptions

__all__ = ["ControllerBuilder", "OperatorHealth", "OperatorOptions"]
