"""The report that a run left on S3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compactor.decoding import require_version
from compactor.discovery.parallel import Parallel
from compactor.errors import InvalidInput, ObjectMissing
from compactor.model import is_run_id
from compactor.ports import ObjectStore
from compactor.report.report import REPORT_VERSION
from compactor.settings.layout import RUNS
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri
from compactor_cli.executions import Execution

_READERS = 16


@dataclass(frozen=True, slots=True)
class StoredReport:
    """One report.

    Attributes:
        document: report.json.
        seconds: wall time of the run.
    """

    document: dict[str, Any]
    bucket: str
    key: str
    seconds: float

    @property
    def uri(self) -> str:
        """URI of report.json."""
        return f"s3://{self.bucket}/{self.key}"


def report_of(execution: Execution, store: ObjectStore) -> StoredReport | None:
    """Return the report of a run; None if it left none.

    The run's own input says where the report is, as it may have had another destination.

    Raises:
        InvalidInput: the bucket cannot be read.
    """
    try:
        settings = Settings.from_input(execution.given)
        bucket, key = settings.layout.run(execution.run_id, "report.json")
    except InvalidInput:
        # Discovery rejected this input too, so there is no report.
        return None
    return _read(bucket, key, execution.seconds, store)


def report_below(state_uri: str, run_id: str, store: ObjectStore) -> StoredReport | None:
    """Return the report of a run that Step Functions no longer has, after 90 days.

    Args:
        state_uri: state prefix of the stack's runs.
        run_id: of the run.
        store: where the report is.

    Raises:
        InvalidInput: the bucket cannot be read.
    """
    state = S3Uri.parse("StateUri", state_uri)
    return _read(state.bucket, f"{state.prefix}runs/{run_id}/report.json", None, store)


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


def _read(bucket: str, key: str, seconds: float | None, store: ObjectStore) -> StoredReport | None:
    try:
        body = store.get(bucket, key)
    except ObjectMissing:
        return None
    require_version(f"s3://{bucket}/{key}", body, REPORT_VERSION)
    document = json.loads(body)
    if seconds is None:
        seconds = document.get("wall_seconds", 0.0)
    return StoredReport(document, bucket, key, seconds)
