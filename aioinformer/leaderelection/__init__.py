"""Leader election: the health of a ``LeaderElector``, and the fencing token of its term.

    elector ──▶ campaign (until the Lease is held) ──▶ term (renewals, while the body runs)

Example::

    from aioinformer.leaderelection import ElectionHealth, Fencing

    elector = LeaderElector(client.api("leases"), "web/shop", identity="shop-0")
    try:
        async with elector.leading() as term:
            fencing: Fencing = term  # pass it to a store that rejects writes of earlier terms
            assert fencing.holder == "shop-0"
            health: ElectionHealth = elector.health
            assert health.leader == "shop-0"
    except errors.LeadershipLost as error:
        print(error)  # be a candidate again, or end the program
"""

from aioinformer.leaderelection.health import ElectionHealth
from aioinformer.leaderelection.state.lease import Fencing

__all__ = ["ElectionHealth", "Fencing"]
