"""``make bench ARGS="SCENARIO …"``: options, and choosing the scenario."""

from __future__ import annotations

import argparse
import importlib
import signal
from collections.abc import Sequence

from compactor.errors import CompactorError, InvalidInput
from compactor_cli.console import print_error
from compactor_dev import REPOSITORY
from compactor_local.model import EngineError

SCENARIOS = ("worker", "queries", "entrance", "exit")
_EXIT_FAILED, _EXIT_USAGE, _EXIT_INTERRUPTED = 1, 2, 130


def parser() -> argparse.ArgumentParser:
    """Return the parser of ``make bench``."""
    made = argparse.ArgumentParser(prog="make bench", description=__doc__)
    scenarios = made.add_subparsers(dest="scenario", required=True)
    for name in SCENARIOS:
        scenario = importlib.import_module(f"compactor_dev.bench.{name}")
        about = (scenario.__doc__ or "").partition(":")[0]
        own = scenarios.add_parser(name, help=about, description=scenario.__doc__)
        scenario.options(own)
        own.set_defaults(main=scenario.main)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run a scenario; returns the exit code."""
    args = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return int(args.main(args, REPOSITORY / "build" / "bench" / args.scenario))
    except KeyboardInterrupt:
        print_error("bench: interrupted")
        return _EXIT_INTERRUPTED
    except (CompactorError, EngineError) as error:
        print_error(f"bench: {' '.join(str(error).split())}")
        return _EXIT_USAGE if isinstance(error, InvalidInput) else _EXIT_FAILED
