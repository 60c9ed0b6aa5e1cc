"""The runs below a state's prefix, from their reports; deployed or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compactor.discovery.parallel import Parallel
from compactor.layout import RUNS
from compactor.model import is_run_id
from compactor.money import dollar_text
from compactor.ports import ObjectStore
from compactor.report.reasons import backlog, partition_count
from compactor.settings.uris import S3Uri
from compactor.sizes import human_bytes, human_seconds
from compactor_cli.deployed.reports import StoredReport, report_below

_READERS = 16


@dataclass(frozen=True, slots=True)
class PastRun:
    """The totals of one run; bytes are stored bytes.

    Attributes:
        started_at: as in its report.
        backlog: objects left for a later run, too young or too few.
        failed: partitions that did not finish.
        wall_seconds: from its start to its report; 0 if unknown.
        worker_seconds: sum over all workers.
        dollars: estimated cost; None if the report has none.
    """

    run_id: str
    status: str
    started_at: str
    partitions: int
    failed: int
    objects_before: int
    objects_after: int
    bytes_before: int
    bytes_after: int
    records: int
    backlog: int
    wall_seconds: float
    worker_seconds: float
    dollars: float | None

    @classmethod
    def of(cls, report: dict[str, Any]) -> PastRun:
        """Return the totals in a ``report.json``."""
        totals = report["totals"]
        return cls(
            report["run_id"],
            report["status"],
            report["started_at"],
            partition_count(report),
            report["failed_count"],
            totals["objects_in"],
            totals["objects_out"],
            totals["bytes_in"],
            totals["bytes_out"],
            totals["records"],
            backlog(report),
            report["wall_seconds"],
            round(totals["seconds"], 2),
            cost["dollars"] if (cost := report["cost"]) else None,
        )

    @property
    def cells(self) -> tuple[str, ...]:
        """A table row; :data:`HEADS` names its columns."""
        return (
            self.run_id,
            self.status,
            f"{self.objects_before:,}",
            f"{self.objects_after:,}",
            human_bytes(self.bytes_before),
            human_bytes(self.bytes_after),
            f"{self.failed:,} of {self.partitions:,}",
            f"{self.backlog:,}",
            human_seconds(self.wall_seconds) if self.wall_seconds else "",
            "" if self.dollars is None else dollar_text(self.dollars),
        )


HEADS = (
    "Run",
    "Status",
    "Objects",
    "After",
    "Bytes",
    "After",
    "Failed partitions",
    "Backlog",
    "Took",
    "Cost",
)


def newest_reports(state: S3Uri, store: ObjectStore, most: int) -> list[StoredReport]:
    """Return the reports that were written last, newest first.

    Args:
        state: the prefix below which runs leave their state.
        store: where it is.
        most: maximum number; only these are read.

    Raises:
        InvalidInput: the bucket cannot be read.
        IntegrityError: a report has an unknown version.
    """

    def written_at(run_id: str) -> tuple[float, str] | None:
        head = store.head(state.bucket, f"{state.prefix}{RUNS}{run_id}/report.json")
        return (head.last_modified, run_id) if head else None

    def read(run_id: str) -> StoredReport | None:
        return report_below(state.uri, run_id, store)

    with Parallel(_READERS) as parallel:
        written = [one for one in parallel.in_order(written_at, _run_ids(state, store)) if one]
        newest = [run_id for _, run_id in sorted(written, reverse=True)[:most]]
        found = parallel.in_order(read, newest)
        # A report may have expired since it was listed.
        return [one for one in found if one is not None]


def _run_ids(state: S3Uri, store: ObjectStore) -> Iterator[str]:
    prefix = f"{state.prefix}{RUNS}"
    for page in store.list_level(state.bucket, prefix):
        names = (one.removeprefix(prefix).rstrip("/") for one in page.prefixes)
        yield from filter(is_run_id, names)
