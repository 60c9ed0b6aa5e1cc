"""The report of a whole maintenance run: each table, the work done to it, and its cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from compactor.decoding import decoded, decoder
from compactor.documents import find_document, leave_document
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places
from compactor_tables.maintenance_receipts import DONE, FAILED, LEFT
from compactor_tables.outcomes import MORE, Outcome, read_outcome

REPORT_VERSION = 1
SUCCEEDED = "succeeded"
# Outcomes are small objects, read one request each.
_CONCURRENT_READS = 32
_NAMED = 5


class Totals(msgspec.Struct, kw_only=True):
    """Sums over the tables of a run."""

    tables: int = 0
    done: int = 0
    left: int = 0
    more: int = 0
    failed: int = 0
    partitions: int = 0
    files: int = 0
    bytes: int = 0
    into: int = 0
    into_bytes: int = 0
    gave_way: int = 0
    expired: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0
    scanned_bytes: int = 0
    dollars: float = 0.0
    seconds: float = 0.0


class TablesReport(msgspec.Struct, kw_only=True):
    """The report of a maintenance run.

    Attributes:
        started_at: as Step Functions has it.
        status: ``succeeded`` or ``failed``.
        cause: the first failures, in one line.
        tables: in the order of the run's list.
    """

    run_id: str
    started_at: str = ""
    status: str = SUCCEEDED
    cause: str = ""
    totals: Totals = msgspec.field(default_factory=Totals)
    tables: list[Outcome] = msgspec.field(default_factory=list)


class _Listed(msgspec.Struct):
    table: str


_decode_list = decoder(list[_Listed])
_decode_report = decoder(TablesReport)


def report_on(
    run_id: str, started_at: str, failure: str, *, state: S3Uri, store: ObjectStore
) -> TablesReport:
    """Read the outcome of each table, write the report, and return it.

    Args:
        run_id: of the run.
        started_at: start of the run.
        failure: of the Map over the tables itself; empty if it succeeded.
        state: prefix of the run's documents.
        store: where the state lies.

    Raises:
        IntegrityError: a document is damaged.
    """
    tables = listed_tables(run_id, state, store)
    with ThreadPoolExecutor(_CONCURRENT_READS, thread_name_prefix="outcome") as pool:
        found = pool.map(lambda table: read_outcome(state, run_id, table, store), tables)
        outcomes = [one or _died(run_id, table) for table, one in zip(tables, found, strict=True)]
    failed = [one for one in outcomes if one.status == FAILED]
    report = TablesReport(
        run_id=run_id,
        started_at=started_at,
        status=FAILED if failed or failure else SUCCEEDED,
        cause=_cause(failure, failed),
        totals=summed(outcomes),
        tables=outcomes,
    )
    leave_document(store, places.report_key(state, run_id), report, REPORT_VERSION)
    return report


def read_report(state: S3Uri, run_id: str, store: ObjectStore) -> TablesReport | None:
    """Read the report of a run, or return None.

    Raises:
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    place = places.report_key(state, run_id)
    return find_document(store, place, _decode_report, REPORT_VERSION)


def listed_tables(run_id: str, state: S3Uri, store: ObjectStore) -> Sequence[str]:
    """Return the addresses of the tables that a run found.

    Raises:
        IntegrityError: the list is damaged.
        ObjectMissing: there is no list.
    """
    bucket, key = places.list_key(state, run_id)
    listed = decoded(_decode_list, f"s3://{bucket}/{key}", store.get(bucket, key))
    return [one.table for one in listed]


def summed(outcomes: Iterable[Outcome]) -> Totals:
    """Return the sums over all outcomes, and the number of tables by status."""
    totals = Totals()
    ends: Counter[str] = Counter()
    for one in outcomes:
        ends[one.status] += 1
        for name in Totals.__struct_fields__:
            if hasattr(one, name):
                setattr(totals, name, getattr(totals, name) + getattr(one, name))
    totals.tables = ends.total()
    totals.done, totals.left = ends[DONE], ends[LEFT]
    totals.more, totals.failed = ends[MORE], ends[FAILED]
    return totals


def _died(run_id: str, table: str) -> Outcome:
    why = "its child execution ended without a word; Step Functions says why"
    return Outcome(table=table, run_id=run_id, status=FAILED, why=why)


def _cause(failure: str, failed: Sequence[Outcome]) -> str:
    lines = [one.line for one in failed[:_NAMED]]
    if len(failed) > _NAMED:
        lines.append(f"and {len(failed) - _NAMED} tables more")
    return "; ".join([*([failure] if failure else []), *lines])
