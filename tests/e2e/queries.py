"""Queries beside everything else that goes on, as many as one likes; the last line has the figures.

    python -m tests.e2e.queries 500
    python -m tests.e2e.queries 500 --seed 7

Ends with 1 when a query did not read each record once, and says which.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from compactor_local.embedded import embedded_s3, in_environment
from tests.e2e.query_oracle import Misread
from tests.e2e.querying import QueriedLake


def main() -> int:
    """Parse the arguments, ask, tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.queries", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("queries", type=int, help="how many at least")
    parser.add_argument("--seed", type=int, default=0, help="of the schedule (default 0)")
    args = parser.parse_args()
    begun = time.monotonic()
    with (
        embedded_s3(lake=True) as s3,
        in_environment(s3.environment),
        TemporaryDirectory() as directory,
    ):
        lake = QueriedLake(s3, Path(directory), args.seed)
        fault = ""
        try:
            lake.play(args.queries)
        except Misread as error:
            fault = f"\nquery {lake.figures.queries + 1} of seed {args.seed}: {error}"
    sys.stdout.write(f"{lake.figures.line}; {time.monotonic() - begun:.0f} s{fault}\n")
    return bool(fault)


if __name__ == "__main__":
    sys.exit(main())
