"""``python -m compactor_dev.bench``: the entry point of ``make bench``."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from compactor.errors import CompactorError, InvalidInput
from compactor_cli.console import print_error
from compactor_dev import REPOSITORY
from compactor_dev.bench import queries, worker


def parser() -> argparse.ArgumentParser:
    """Return the parser of ``make bench``."""
    made = argparse.ArgumentParser(prog="make bench")
    scenarios = made.add_subparsers(dest="scenario", required=True)
    for name, scenario in (("worker", worker), ("queries", queries)):
        own = scenarios.add_parser(name, description=scenario.__doc__)
        scenario.add_arguments(own)
        own.set_defaults(main=scenario.main)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run a scenario; returns the exit code."""
    args = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    directory = REPOSITORY / "build" / "bench" / args.scenario
    directory.mkdir(parents=True, exist_ok=True)
    try:
        return int(args.main(args, directory))
    except KeyboardInterrupt:
        print_error("bench: interrupted")
        return 130
    except CompactorError as error:
        print_error(f"bench: {' '.join(str(error).split())}")
        return 2 if isinstance(error, InvalidInput) else 1


if __name__ == "__main__":
    sys.exit(main())
