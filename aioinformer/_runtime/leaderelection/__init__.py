"""Leader election: of several replicas, only one is active.

elector ──▶ campaign (until the Lease is held) ──▶ term (renewals, while the body runs)

    elector          the public class
    campaign         requests for a Lease, one after the other
    reports          failed requests in health, log, metrics and the error hook
    uses             the Leases that this program uses
    term             the time as a leader: the renewals, and the end
    guarded_writer   a writer that rejects writes after the Lease is lost
    cancellation     the cancellation of a body whose Lease is lost
    clock            a clock that advances while the machine is suspended
    health           the public state of an elector
"""
