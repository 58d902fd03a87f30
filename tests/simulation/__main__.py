"""Command line of the simulation: run histories, repeat one, show its trace.

    python -m tests.simulation --seed 7                  one history
    python -m tests.simulation --seed 0 --histories 1000 as many, from that seed on
    python -m tests.simulation --seed 7 --keep 0-3,7     a part of one
    python -m tests.simulation --seed 7 --trace          what happened, line by line
    ... --histories 1000 --rows    print how often each row of the reflector's table was taken

The exit status is 1 if a promise was broken. The report says how to repeat that with few steps.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from tests.simulation.checks.violation import Violation
from tests.simulation.generator import draw
from tests.simulation.plan import Plan
from tests.simulation.runner import Row, explain, judged, parse_ranges, rows_taken, show_rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command line and return the exit status.

    Args:
        arguments: the command line; default: ``sys.argv``.
    """
    options = _parser().parse_args(arguments)
    rows: Counter[Row] = Counter()
    for seed in range(options.seed, options.seed + options.histories):
        plan: Plan = draw(seed)
        if options.keep is not None:
            plan = plan.keep(options.keep)
        violation = _run(plan, rows, trace=options.trace)
        if violation is not None:
            whole = options.keep is None and not options.trace
            _say(explain(plan, violation) if whole else f"seed {seed}: {violation}")
            return 1
    if options.rows:
        _say(show_rows(rows))
    return 0


def _run(plan: Plan, rows: Counter[Row], *, trace: bool) -> Violation | None:
    violation, history = judged(plan)
    if history is not None:
        rows += rows_taken([history])
        _say(history.trace().rstrip("\n") if trace else repr(history))
    return violation


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description="Run informers through hours of faults in simulated time.",
    )
    parser.add_argument("--seed", type=int, default=0, help="the (first) history")
    parser.add_argument("--histories", type=int, default=1, help="how many, one seed after another")
    parser.add_argument("--keep", type=parse_ranges, help="the steps to carry out, as in 0-3,7")
    parser.add_argument("--trace", action="store_true", help="print what happened, line by line")
    parser.add_argument("--rows", action="store_true", help="print the table and its counts")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
