"""Keys of maintenance documents, below the prefix of a state."""

from __future__ import annotations

import hashlib

from compactor.errors import InvalidInput
from compactor.model import is_run_id
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri

RUNS = "runs/"
TABLES = "tables/"


def table_id(table: TableAddress) -> str:
    """Return the id of a table in keys: 32 hexadecimal digits."""
    return hashlib.blake2b(table.text.encode(), digest_size=16).hexdigest()


def state_around(bucket: str, key: str, run_id: str) -> S3Uri:
    """Return the state that holds a document of a run.

    Args:
        bucket: of the document.
        key: of the document, below the run's prefix.
        run_id: of the run.

    Raises:
        InvalidInput: it is not a document of this run.
    """
    before, found, _ = f"/{key}".rpartition(f"/{RUNS}{run_id}/")
    if not found:
        accepted = f"a key below {RUNS}{run_id}/"
        raise InvalidInput("key", key, accepted)
    return S3Uri(bucket, f"{before}/".removeprefix("/"))


def order_key(state: S3Uri, run_id: str, table: TableAddress) -> tuple[str, str]:
    """Return bucket and key of a run's order for a table."""
    return _run_key(state, run_id, f"tables/{table_id(table)}.order.json")


def receipt_key(state: S3Uri, run_id: str, table: TableAddress) -> tuple[str, str]:
    """Return bucket and key of the receipt of a run's order for a table."""
    return _run_key(state, run_id, f"tables/{table_id(table)}.receipt.json")


def request_key(state: S3Uri, run_id: str) -> tuple[str, str]:
    """Return bucket and key of a run's input, as it was received."""
    return _run_key(state, run_id, "maintenance-request.json")


def list_key(state: S3Uri, run_id: str) -> tuple[str, str]:
    """Return bucket and key of the list of a run's tables, which the Map reads."""
    return _run_key(state, run_id, "tables.json")


def report_key(state: S3Uri, run_id: str) -> tuple[str, str]:
    """Return bucket and key of a run's report."""
    return _run_key(state, run_id, "tables-report.json")


def lease_key(state: S3Uri, table: TableAddress) -> tuple[str, str]:
    """Return bucket and key of a table's lease."""
    return state.bucket, f"{state.prefix}{TABLES}{table_id(table)}/lease.json"


def outcome_key(state: S3Uri, run_id: str, table: TableAddress) -> tuple[str, str]:
    """Return bucket and key of a table's outcome in a run."""
    return _run_key(state, run_id, f"tables/{table_id(table)}.outcome.json")


def _run_key(state: S3Uri, run_id: str, name: str) -> tuple[str, str]:
    if not is_run_id(run_id):
        accepted = "1 to 128 letters, digits and . _ : -, the first a letter or digit"
        raise InvalidInput("run_id", run_id, accepted)
    return state.bucket, f"{state.prefix}{RUNS}{run_id}/{name}"
