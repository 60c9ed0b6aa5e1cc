"""Compact a whole source as one Spark job: an entry point for spark-submit.

    spark-submit ... compact_run.py SOURCE DEST [--option VALUE ...]

Discovers, plans, compacts, publishes to the table, cleans up and reports, as ``compactor run`` does
with the same options, and writes the same documents. The executors store the groups of all
partitions, however small; the driver does everything else. The exit code is 0 when the run
succeeded, 1 when something failed, and 2 when the input is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from compactor.clock import NoDeadline, SystemClock, instant, new_run_id
from compactor.discovery.work_list import Discovery
from compactor.errors import CompactorError, InvalidInput
from compactor.failures import first_line
from compactor.orchestration.messages import Answer, Desk, Order
from compactor.orchestration.partition_retry import STOPPED
from compactor.orchestration.run import Given, run_whole
from compactor.orchestration.workers import Observer
from compactor.ports import ObjectStore
from compactor.report.report import RunReport
from compactor.s3.store import S3Store, make_client
from compactor.settings.arguments import (
    DESTINATION,
    SOURCE,
    add_fields,
    add_places,
    fields_from,
)
from compactor.settings.settings import Settings
from compactor_spark.console import Console
from compactor_spark.job import compact_listed, start_session, stop_session
from compactor_spark.places import RunPlace

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

NAME = "compact_run"
# Orders carried out concurrently, by threads of the driver that mostly wait for S3.
_SLOTS = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return the exit code."""
    settings = _settings(arguments)
    console = Console(name=NAME)
    # Needed even when there is nothing to do: YARN fails a driver that starts no session.
    session = start_session(settings)
    try:
        report = _run(settings, session, console)
    except CompactorError as error:
        console.say(f"failed: {type(error).__name__}: {first_line(error)}")
        return 2 if isinstance(error, InvalidInput) else 1
    finally:
        stop_session(session)
    bucket, key = settings.layout.run(report.run_id, "report.json")
    console.say(_verdict(report))
    console.say(f"report: s3://{bucket}/{key}")
    return 0 if report.status == "succeeded" else 1


def _run(settings: Settings, session: SparkSession, console: Console) -> RunReport:
    client, clock, run_id = make_client(), SystemClock(), new_run_id()
    given = Given(
        settings=settings,
        run_id=run_id,
        started_at=instant(clock.now()),
        store=S3Store(client),
        clock=clock,
        deadline=NoDeadline(),
        workers=lambda store: DriverThreads(settings, store, run_id),
        spark=ThisJob(session, client, console),
        observer=_Show(console),
    )
    report = run_whole(given).report
    assert report is not None  # noqa: S101 - there is no deadline
    return report


@dataclass(frozen=True, slots=True)
class ThisJob:
    """Implements :class:`compactor.orchestration.workers.Spark` in the session of this job."""

    session: SparkSession
    client: S3Client
    console: Console

    def run(self, run_id: str, run_uri: str, on_line: Callable[[str], None]) -> str:
        """Compact the listed partitions; return why that failed, or an empty string."""
        place = RunPlace.parse(run_uri)
        outcome = compact_listed(place, self.client, self.console, lambda _: self.session)
        return outcome.line if outcome.error else ""

    def stop(self) -> None:
        """Stop the session, and with it all tasks."""
        stop_session(self.session)


@dataclass(slots=True)
class DriverThreads:
    """Implements :class:`compactor.orchestration.workers.Workers` in threads of this process.

    With engine spark they only look for partitions with work, and clean up.
    """

    settings: Settings
    store: ObjectStore
    run_id: str
    slots: int = _SLOTS
    own_time: bool = True
    _stopped: bool = False

    def carry_out(self, order: Order) -> Answer:
        """Carry out one order; return errors as its answer."""
        if self._stopped:
            return Answer("failed", STOPPED)
        desk = Desk(self.settings, self.store, SystemClock(), self.run_id)
        try:
            return desk.carry_out(order, NoDeadline())
        except Exception as error:
            # The report counts it; other partitions are not affected.
            return Answer.of(error)

    def stop(self) -> None:
        """Begin no other order."""
        self._stopped = True


@dataclass(frozen=True, slots=True)
class _Show(Observer):
    """Shows the steps around the Spark job."""

    console: Console

    def discovered(self, found: Discovery) -> None:
        self.console.say(f"discovered {len(found.partitions):,} partitions")

    def planned_clean_up(self, partitions: int) -> None:
        self.console.say(f"cleaning up {partitions:,} partitions")


def _verdict(report: RunReport) -> str:
    if report.status != "succeeded":
        return f"{report.status}: {report.cause}"
    totals = report.totals
    return f"succeeded: {totals.objects_in:,} objects into {totals.objects_out:,}"


def _settings(arguments: Sequence[str] | None) -> Settings:
    parser = argparse.ArgumentParser(
        prog=f"{NAME}.py", description="Compact a whole source as one Spark job."
    )
    add_places(parser, SOURCE, DESTINATION)
    add_fields(parser)
    given = parser.parse_args(arguments)
    try:
        return Settings.from_input({**fields_from(given), "engine": "spark"})
    except InvalidInput as error:
        parser.error(str(error))


if __name__ == "__main__" and (code := main()):
    # Some services treat any SystemExit as a failure, even that of exit code 0.
    sys.exit(code)
