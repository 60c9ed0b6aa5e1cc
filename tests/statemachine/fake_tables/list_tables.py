"""Lists the tables of the input."""

from __future__ import annotations

import json
from typing import Any

from compactor.s3.store import S3Store, make_client
from compactor.settings.uris import parse_location
from compactor_tables import document_keys as places
from tests.statemachine.fake_handlers.script import act

SCRIPT = ("maintenance-request.json", "script.json")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Write the request and the list to S3, and tell where they are."""
    run_id, event = event["run_id"], event["input"]
    act("list_tables", "", {"trouble": {}, **event}, context)
    state = parse_location(event["s3_state_uri"])
    store = S3Store(make_client())
    bucket, key = places.list_key(state, run_id)
    request = {"bucket": bucket, "key": f"{state.prefix}runs/{run_id}/maintenance-request.json"}
    # As a real one would be; what only stand-ins are told lies beside it.
    asked = {"s3_state_uri": event["s3_state_uri"], "tables": list(event["engines"])}
    asked["dry_run"] = event.get("dry_run", False)
    store.put(bucket, request["key"], json.dumps(asked).encode())
    store.put(bucket, request["key"].replace(*SCRIPT), json.dumps(event).encode())
    items = [{"table": one, "run_id": run_id, "request": request} for one in event["engines"]]
    store.put(bucket, key, json.dumps(items).encode())
    tables = {"bucket": bucket, "key": event.get("list_key", key)}
    return {"run_id": run_id, "count": len(items), "tables": tables, "request": request}
