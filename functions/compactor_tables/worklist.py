"""A run's input and its list of tables, which the first step stores for the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from compactor.decoding import decoded
from compactor.ports import ObjectStore
from compactor.settings.tables import TableAddress
from compactor_tables import document_keys as places
from compactor_tables.request import MaintenanceRequest, read_request

_JSON = "application/json"


def write_worklist(
    request: MaintenanceRequest,
    given: Mapping[str, Any],
    run_id: str,
    tables: Iterable[TableAddress],
    *,
    store: ObjectStore,
) -> dict[str, Any]:
    """Store the input of a run and its tables; return the locations of both.

    Args:
        request: the input, checked.
        given: the input as it was received.
        run_id: of the run.
        tables: in the order in which they are worked on.
        store: where the state lies.
    """
    asked = _place(places.request_key(request.state, run_id))
    store.put(**asked, body=msgspec.json.encode(dict(given)), content_type=_JSON)
    items = [{"table": one.text, "run_id": run_id, "request": asked} for one in tables]
    listed = _place(places.list_key(request.state, run_id))
    store.put(**listed, body=msgspec.json.encode(items), content_type=_JSON)
    return {"run_id": run_id, "count": len(items), "tables": listed, "request": asked}


def read_stored_request(bucket: str, key: str, store: ObjectStore) -> MaintenanceRequest:
    """Read the stored input of a run.

    Raises:
        ObjectMissing: there is no such document.
        IntegrityError: it is damaged.
        InvalidInput: another version of this program wrote it.
    """
    where = f"s3://{bucket}/{key}"
    return read_request(decoded(msgspec.json.decode, where, store.get(bucket, key)))


def _place(place: tuple[str, str]) -> dict[str, str]:
    bucket, key = place
    return {"bucket": bucket, "key": key}
