"""Compacts what discovery listed for Spark, in a session that the caller opens."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark import SparkConf
from pyspark.sql import SparkSession

from compactor.clock import SystemClock
from compactor.failures import first_line
from compactor.ports import StoreTraits
from compactor.probe.probe import traits_for
from compactor.s3.store import S3Store
from compactor.settings.settings import Settings
from compactor_spark.console import Console
from compactor_spark.driver import Driver
from compactor_spark.hours import Hours, hours_of
from compactor_spark.outcome import Outcome
from compactor_spark.places import LoadedRun, RunPlace, load_run
from compactor_spark.upsert.merging import Merging
from compactor_spark.upsert.opening import start_settings

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

# Databricks sets it. The session is Databricks' own there, and jobs must not stop it.
_DATABRICKS = "DATABRICKS_RUNTIME_VERSION"


def start_session(settings: Settings) -> SparkSession:
    """Return a session with spark-submit's settings and those that the run's table needs."""
    builder = SparkSession.Builder()
    given = dict(SparkConf().getAll())
    for name, value in start_settings(settings, given).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stop_session(session: SparkSession) -> None:
    """Stop the session, unless it belongs to the platform."""
    if _DATABRICKS not in os.environ:
        session.stop()


def compact_listed(
    place: RunPlace,
    client: S3Client,
    console: Console,
    open_session: Callable[[Settings], SparkSession],
) -> Outcome:
    """Compact the partitions in a run's list for Spark, and store the outcome next to it.

    Args:
        place: the run, whose settings and lists discovery has written.
        client: serves the driver's own requests.
        console: shows progress.
        open_session: returns a session for the run's settings; it is stopped at the end.
    """
    store = S3Store(client)
    try:
        loaded = load_run(place, store)
        traits = traits_for(loaded.settings.state, store, SystemClock().now())
        # Needed even when there is nothing to do: YARN fails a driver that starts no session.
        outcome = _compact(loaded, open_session(loaded.settings), client, console, traits)
    except Exception as error:
        outcome = Outcome.of_error(type(error).__name__, first_line(error))
    console.say(outcome.line)
    try:
        outcome.write(place, store)
    except Exception as error:
        cause = f"the outcome could not be stored: {first_line(error)}"
        console.say(cause)
        return Outcome.of_error(type(error).__name__, cause)
    return outcome


def _compact(
    loaded: LoadedRun,
    session: SparkSession,
    client: S3Client,
    console: Console,
    traits: StoreTraits,
) -> Outcome:
    try:
        merging = Merging.of(session, loaded, client, console, traits)
        used: list[Hours] = []

        def before_stop() -> None:
            if merging is not None:
                merging.merge()
            used.append(hours_of(session))

        driver = Driver(loaded, client, console, traits, before_stop)
        receipts = driver.compact(session, lambda: stop_session(session))
    finally:
        stop_session(session)
    outcome = Outcome.of(receipts, merging.receipt if merging is not None else None)
    return replace(outcome, hours=used[-1]) if used else outcome
