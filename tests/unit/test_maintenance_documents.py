"""What a maintenance run is asked, what it orders and what it returns are read back as written."""

from __future__ import annotations

import pytest

from compactor.errors import IntegrityError, InvalidInput
from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_tables import document_keys as places
from compactor_tables.maintenance_receipts import (
    MaintenanceReceipt,
    RewrittenPartition,
    read_receipt,
    write_receipt,
)
from compactor_tables.orders import Condition, Order, PartitionOrder, read_order, write_order
from compactor_tables.request import read_request
from tests.support.memory_store import MemoryStore

STATE = parse_location("s3://state/maintenance/")
TABLE = "glue:bronze.events"


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.add_bucket("state")
    return store


def test_an_order_is_read_back_as_it_was_written(store: MemoryStore) -> None:
    where = (Condition("day", "identity", "2026-11-01"), Condition("kind", "bucket[4]", None))
    order = Order(
        run_id="r1",
        table=TABLE,
        engine="spark",
        steps=("rewrite", "expire"),
        partitions=(PartitionOrder("day=2026-11-01", 1, where, 30, 3_000),),
    )
    write_order(order, STATE, store)
    assert read_order(*places.order_key(STATE, "r1", parse_table(TABLE)), store) == order


def test_a_receipt_is_read_back_as_it_was_written(store: MemoryStore) -> None:
    receipt = MaintenanceReceipt(table=TABLE, run_id="r1", engine="spark")
    receipt.partitions.append(RewrittenPartition(name="", status="done", rows=7))
    write_receipt(receipt, STATE, store)
    assert read_receipt(STATE, "r1", TABLE, store) == receipt
    assert read_receipt(STATE, "r2", TABLE, store) is None


def test_a_receipt_of_a_later_version_is_refused(store: MemoryStore) -> None:
    bucket, key = places.receipt_key(STATE, "r1", parse_table(TABLE))
    store.put(bucket, key, b'{"version": 2}')
    with pytest.raises(IntegrityError, match="version 2"):
        read_receipt(STATE, "r1", TABLE, store)


def test_a_rewrite_that_was_rolled_back_is_not_sound() -> None:
    receipt = MaintenanceReceipt(table=TABLE, run_id="r1", engine="spark")
    assert receipt.is_sound
    receipt.partitions.append(RewrittenPartition(name="", status="rolled back"))
    assert not receipt.is_sound


def test_every_field_of_the_input_but_the_state_and_one_kind_of_tables_has_a_default() -> None:
    request = read_request({"s3_state_uri": "s3://state/maintenance/", "tables": [TABLE]})
    assert request.tables == (TABLE,)
    assert not request.dry_run


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "s3_state_uri"),
        ({"s3_state_uri": "s3://state/m/"}, "tables"),
        ({"s3_state_uri": "s3://state/m/", "tables": ["bronze.events"]}, "tables"),
        ({"s3_state_uri": "s3://state/m/", "tables": [TABLE], "tabels": []}, "tabels"),
        ({"s3_state_uri": "s3://state/m/", "delta_prefixes": ["/lake"]}, "delta_prefixes"),
        (
            {"s3_state_uri": "s3://state/m/", "tables": [TABLE], "policies": [{"match": []}]},
            r"policies\[1\].match",
        ),
    ],
)
def test_bad_input_names_the_field(given: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        read_request(given)
