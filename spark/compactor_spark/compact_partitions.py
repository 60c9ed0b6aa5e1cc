"""Compact the oversized partitions of a run: the entry point for spark-submit.

    spark-submit ... compact_partitions.py --run s3://BUCKET/<state prefix>/runs/<run id>/

Discovery has written ``settings.json`` and ``oversized.json`` there. The job writes receipts as the
Lambda function does, and ``spark-result.json`` or ``spark-error.json``. Its exit code is 0 when
every partition was done, 1 when something failed, and 2 when the arguments are wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark import SparkConf
from pyspark.sql import SparkSession

from compactor.clock import SystemClock
from compactor.conditions import StoreTraits
from compactor.errors import InvalidInput
from compactor.probe.probe import traits_for
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_spark.console import Console
from compactor_spark.driver import Driver
from compactor_spark.hours import Hours, hours_of
from compactor_spark.outcome import Outcome
from compactor_spark.places import RUN_ACCEPTED, LoadedRun, RunPlace, load_run
from compactor_spark.rounds import first_line
from compactor_spark.upsert.merging import Merging
from compactor_spark.upsert.opening import start_settings

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return the exit code."""
    place = _place(arguments)
    console = Console()
    client = make_client()
    store = S3Store(client)
    try:
        loaded = load_run(place, store)
        traits = traits_for(loaded.settings.state, store, SystemClock().now())
        outcome = _compact(loaded, client, console, traits)
    except Exception as error:
        outcome = Outcome.of_error(type(error).__name__, first_line(error))
    console.say(outcome.line)
    try:
        outcome.write(place, store)
    except Exception as error:
        console.say(f"the outcome could not be stored: {first_line(error)}")
        return 1
    return outcome.exit_code


def _compact(loaded: LoadedRun, client: S3Client, console: Console, traits: StoreTraits) -> Outcome:
    # Needed even when there is nothing to do: YARN fails a driver that starts no session.
    session = _session(loaded.settings)
    try:
        merging = Merging.of(session, loaded, client, console, traits)
        used: list[Hours] = []

        def before_stop() -> None:
            if merging is not None:
                merging.merge()
            used.append(hours_of(session))

        receipts = Driver(loaded, client, console, traits, before_stop).compact(session)
    finally:
        session.stop()
    outcome = Outcome.of(receipts, merging.receipt if merging is not None else None)
    return replace(outcome, hours=used[-1]) if used else outcome


def _session(settings: Settings) -> SparkSession:
    """Return a session with spark-submit's settings and those that the run's table needs."""
    builder = SparkSession.Builder()
    given = dict(SparkConf().getAll())
    for name, value in start_settings(settings, given).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


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
