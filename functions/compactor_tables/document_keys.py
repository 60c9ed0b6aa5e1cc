"""Where the documents of maintenance lie, below the prefix of a state."""

from __future__ import annotations

import hashlib

from compactor.errors import InvalidInput
from compactor.model import is_run_id
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri

RUNS = "runs/"
TABLES = "tables/"


def table_id(table: TableAddress) -> str:
    """What a table is called in keys: 32 hexadecimal digits."""
    return hashlib.blake2b(table.text.encode(), digest_size=16).hexdigest()


def state_around(bucket: str, key: str, run_id: str) -> S3Uri:
    """The state that a document of a run lies in.

    Args:
        bucket: of the document.
        key: of the document, below the run's prefix.
        run_id: of the run.

    Raises:
        InvalidInput: it is no document of this run.
    """
    before, found, _ = f"/{key}".rpartition(f"/{RUNS}{run_id}/")
    if not found:
        accepted = f"a key below {RUNS}{run_id}/"
        raise InvalidInput("key", key, accepted)
    return S3Uri(bucket, f"{before}/".removeprefix("/"))


def order_key(state: S3Uri, run_id: str, table: TableAddress) -> tuple[str, str]:
    """What a run wants done with a table."""
    return _run_key(state, run_id, f"tables/{table_id(table)}.order.json")


def receipt_key(state: S3Uri, run_id: str, table: TableAddress) -> tuple[str, str]:
    """What became of it."""
    return _run_key(state, run_id, f"tables/{table_id(table)}.receipt.json")


def request_key(state: S3Uri, run_id: str) -> tuple[str, str]:
    """What a run was asked to do, as it was given."""
    return _run_key(state, run_id, "maintenance-request.json")


def list_key(state: S3Uri, run_id: str) -> tuple[str, str]:
    """The tables that a run found, for the Map over them."""
    return _run_key(state, run_id, "tables.json")


def report_key(state: S3Uri, run_id: str) -> tuple[str, str]:
    """What a run did, for a person."""
    return _run_key(state, run_id, "tables-report.json")


def lease_key(state: S3Uri, table: TableAddress) -> tuple[str, str]:
    """Who works on a table now."""
    return _table_key(state, table, "lease.json")


def optimizers_key(state: S3Uri, table: TableAddress) -> tuple[str, str]:
    """Which runs of a table's optimizers a receipt covers."""
    return _table_key(state, table, "optimizers.json")


def outcome_key(state: S3Uri, run_id: str, table: TableAddress) -> tuple[str, str]:
    """A table's line of a run's report."""
    return _run_key(state, run_id, f"tables/{table_id(table)}.outcome.json")


def history_prefix(state: S3Uri, table: TableAddress) -> tuple[str, str]:
    """What was measured of a table, and done to it, one document a look, in order of time."""
    return _table_key(state, table, "history/")


def superseded_prefix(state: S3Uri, table: TableAddress) -> tuple[str, str]:
    """Which replaced files of a table were marked for a cheaper class, one document a run."""
    return _table_key(state, table, "superseded/")


def _table_key(state: S3Uri, table: TableAddress, name: str) -> tuple[str, str]:
    return state.bucket, f"{state.prefix}{TABLES}{table_id(table)}/{name}"


def _run_key(state: S3Uri, run_id: str, name: str) -> tuple[str, str]:
    if not is_run_id(run_id):
        accepted = "1 to 128 letters, digits and . _ : -, the first a letter or digit"
        raise InvalidInput("run_id", run_id, accepted)
    return state.bucket, f"{state.prefix}{RUNS}{run_id}/{name}"
