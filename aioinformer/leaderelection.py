"""Leader election: the health of a ``LeaderElector``, and the fencing token of its term.

``LeaderElector`` itself is in ``aioinformer``.
"""

from aioinformer._core.leaderelection.lease import Fencing
from aioinformer._runtime.leaderelection.health import ElectionHealth

__all__ = ["ElectionHealth", "Fencing"]
