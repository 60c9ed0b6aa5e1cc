"""``python -m compactor_dev.bench``: the entry point of ``make bench``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from compactor.errors import CompactorError
from compactor_dev.bench import queries, worker


def main(argv: Sequence[str] | None = None) -> int:
    """Run a scenario; returns the exit code."""
    parser = argparse.ArgumentParser(prog="make bench")
    scenarios = parser.add_subparsers(required=True)
    for name, module in (("worker", worker), ("queries", queries)):
        scenario = scenarios.add_parser(name, description=module.__doc__)
        scenario.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
        scenario.add_argument("--latency-ms", type=float, default=25.0, help="(%(default)s)")
        module.add_arguments(scenario)
        scenario.set_defaults(main=module.main)
    args = parser.parse_args(argv)
    try:
        return int(args.main(args))
    except CompactorError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
