"""Compact the oversized partitions of a run: the entry point for spark-submit.

    spark-submit ... compact_partitions.py --run s3://BUCKET/<state prefix>/runs/<run id>/

Discovery has written ``settings.json`` there, and workers have left partitions in ``oversized/``.
The job writes receipts as the Lambda function does, and ``spark-result.json`` or
``spark-error.json``. Its exit code is 0 when every partition was done, 1 when something failed, and
2 when the arguments are wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from compactor.errors import InvalidInput
from compactor.s3.store import make_client
from compactor_spark.console import Console
from compactor_spark.job import compact_listed, start_session
from compactor_spark.places import RUN_ACCEPTED, RunPlace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return the exit code."""
    place = _place(arguments)
    return compact_listed(place, make_client(), Console(), start_session).exit_code


def _place(arguments: Sequence[str] | None) -> RunPlace:
    parser = argparse.ArgumentParser(description="Compact the oversized partitions of a run.")
    parser.add_argument("--run", required=True, metavar="URI", help=RUN_ACCEPTED)
    given = parser.parse_args(arguments)
    try:
        return RunPlace.parse(given.run)
    except InvalidInput as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
