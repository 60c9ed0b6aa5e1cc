"""The end of a table's maintenance: what was replaced is tagged, where its rule wants that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from compactor.errors import TransientStoreError
from compactor.settings.uris import parse_location
from compactor_tables import document_keys as places
from compactor_tables.handlers import end_table
from compactor_tables.handlers.runtime import RunOfTables
from compactor_tables.maintenance_receipts import MaintenanceReceipt, read_receipt, write_receipt
from compactor_tables.orders import Order, write_order
from tests.support.memory_store import Call, ManualClock, MemoryStore

pytest.importorskip("deltalake")

from tests.support.delta_lake import TABLE, DeltaLake
from tests.unit.test_handlers import Context

STATE = parse_location("s3://lake/_maintenance/")
RUN = "run-1"


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    lake = DeltaLake(tmp_path, MemoryStore(ManualClock(1_700_000_000.0)))
    lake.append()
    return lake


def end(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch, **rule: Any
) -> tuple[dict[str, Any], MaintenanceReceipt]:
    """A rewrite by Spark, and what the handler makes of it."""
    bucket, key = places.request_key(STATE, RUN)
    rules = [{"match": ["*"], **rule}]
    document = {"s3_state_uri": STATE.uri, "tables": [TABLE.text], "policies": rules}
    lake.store.seed(bucket, key, msgspec.json.encode(document))
    write_order(Order(run_id=RUN, table=TABLE.text, engine="spark"), STATE, lake.store)
    receipt = lake.rewrite()
    receipt.status = "done"
    write_receipt(receipt, STATE, lake.store)
    monkeypatch.setattr(RunOfTables, "of", lambda *_: RunOfTables(RUN, STATE, lake.store))
    order_bucket, order_key = places.order_key(STATE, RUN, TABLE)
    event = {
        "run_id": RUN,
        "table": TABLE.text,
        "request": {"bucket": bucket, "key": key},
        "plan": {
            "engine": "spark",
            "reason": "it is the cheapest",
            "rule": "rule 1 (*)",
            "order": {"bucket": order_bucket, "key": order_key},
            "foretold": {},
        },
    }
    answer = end_table.handler(event, Context())
    found = read_receipt(STATE, RUN, TABLE.text, lake.store)
    assert found is not None
    return answer, found


def test_what_a_rewrite_replaced_is_tagged_where_the_rule_wants_that(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = lake.alive
    _, receipt = end(lake, monkeypatch, tag_superseded=True)
    assert lake.tagged == old
    assert receipt.steps["tags"] == "6 files tagged, 0 untagged"


def test_nothing_is_tagged_where_no_rule_says_so(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, receipt = end(lake, monkeypatch)
    assert lake.tagged == set()
    assert "tags" not in receipt.steps


def test_a_table_whose_files_could_not_be_tagged_is_reported_and_not_failed(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(call: Call) -> None:
        if call.name == "put_tags":
            raise TransientStoreError("s3: SlowDown")

    lake.store.hooks.before.append(refuse)
    answer, receipt = end(lake, monkeypatch, tag_superseded=True)
    assert receipt.steps["tags"] == "not tagged: TransientStoreError: s3: SlowDown"
    plain, _ = end(lake, monkeypatch)
    assert answer["status"] == plain["status"]


def test_a_table_whose_run_cannot_be_read_is_given_back_all_the_same(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, receipt = end(lake, monkeypatch, of_a_later_version=True)
    assert receipt.steps["tags"].startswith("not tagged: InvalidInput: policies[1]")
    plain, _ = end(lake, monkeypatch)
    assert answer["status"] == plain["status"]
