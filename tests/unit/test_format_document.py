"""docs/format.md and the code agree on every stored document."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from compactor.cleaning.clean_up_list import read_due
from compactor.discovery.work_list import partition_from
from compactor.log.counts import BY_SETTINGS
from compactor.model import PASSING_REASONS, Partition
from compactor.report.run_records import SparkErrorLine
from compactor.settings.fields import FIELDS
from compactor.settings.settings import Settings
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri, parse_location
from compactor_tables import document_keys as places
from compactor_tables.maintenance_receipts import MaintenanceReceipt, write_receipt
from compactor_tables.maintenance_report import report_on
from compactor_tables.orders import Order, write_order
from compactor_tables.outcomes import outcome_of, write_outcome
from tests.support.document_tables import NUMBERED, OBJECTS, VALUES, parts_of, table_of
from tests.support.examples import PARTITION
from tests.support.format_document import (
    Key,
    blocks_of,
    pattern_of,
    told_keys,
    told_types,
    told_values,
)
from tests.support.memory_store import MemoryStore
from tests.support.stored_state import STATE, load, versions
from tests.support.table_world import Tables

DOCUMENT = Path(__file__).parents[2] / "docs" / "format.md"
TEXT = DOCUMENT.read_text("utf-8")
TYPES = told_types(TEXT)
KEYS = told_keys(TEXT)
# What the document says of all documents of a run says nothing of one.
REST = "runs/<run id>/<rest>"
PATTERNS = [pattern_of(one.key) for one in KEYS if one.key != REST]
# Documents whose fields no type of the code has.
WRITTEN_BY_HAND = {"ParquetSchema"}
# Documents that only a discovery of several invocations leaves.
# Not documents of one type.
OTHER_EXAMPLES = {"settings", "spark"}
EXAMPLES = {name: json.loads(body) for name, body in blocks_of(TEXT, "json")}
MEANING_WORDS = 12


def is_key(told: Key, name: str) -> bool:
    return told.key != REST and pattern_of(told.key).fullmatch(name) is not None


def require_ways(store: MemoryStore, state: str = STATE) -> None:
    """Every object of the state was written as the document says: created, put or swapped."""
    ways = {"create": {"create"}, "put": {"put"}, "swap": {"create", "replace"}}
    wrote = [one for one in store.calls if one.name in {"create", "put", "replace"}]
    compared = 0
    for call in wrote:
        name = call.key.removeprefix(state)
        if name == call.key:
            continue
        (found,) = {one.written for one in KEYS if is_key(one, name)}
        assert call.name in ways[found], (
            f"{call.name} of {name}, which the document says to {found}"
        )
        compared += 1
    assert compared


def keys_of(made: bytes) -> set[str]:
    return set(json.loads(gzip.decompress(made) if made[:2] == b"\x1f\x8b" else made))


def test_each_field_is_there_with_its_type_and_what_its_absence_means() -> None:
    for name in OBJECTS:
        assert TYPES[name].fields == table_of(name), name


def test_each_meaning_is_short() -> None:
    long = {
        f"{name}.{field}": meaning
        for name, one in TYPES.items()
        for field, meaning in one.meanings.items()
        if len(meaning.split()) > MEANING_WORDS
    }
    assert long == {}


def test_each_value_is_there() -> None:
    listed = told_values(TEXT)
    assert listed == {name: [one.value for one in values] for name, values in VALUES.items()}


def test_the_marks_of_reasons_are_those_of_the_code() -> None:
    marked = {mark: set(re.findall(rf"^  (\w+) +\({mark}\) ", TEXT, re.MULTILINE)) for mark in "ps"}
    assert marked == {"p": {*PASSING_REASONS}, "s": {*BY_SETTINGS}}


def test_nothing_is_there_that_the_code_has_not() -> None:
    assert set(TYPES) == {*OBJECTS, *WRITTEN_BY_HAND}


def test_every_type_that_a_field_names_is_described() -> None:
    kinds = {kind for name in OBJECTS for kind, _ in table_of(name).values()}
    named = {one for kind in kinds for one in re.findall(r"[A-Z]\w+", kind)}
    assert named <= {*OBJECTS, *VALUES}


def test_every_type_that_a_key_names_is_described() -> None:
    named = {one for key in KEYS for one in re.findall(r"\b[A-Z][A-Za-z]+\b", key.what)}
    assert named <= {*OBJECTS, *WRITTEN_BY_HAND, "Spark", "Step", "Functions"}


def test_the_examples_are_such_documents_and_every_type_is_in_one() -> None:
    reached = set()
    for example, shown in EXAMPLES.items():
        if example in {*OTHER_EXAMPLES, *WRITTEN_BY_HAND}:
            continue
        for one in shown if isinstance(shown, list) else [shown]:
            for name, body, known in parts_of(example, one):
                needed = {field for field, (_, absent) in known.items() if absent == "required"}
                assert needed <= set(body) <= set(known), f"{name} in {example}"
                reached.add(name)
            # A tuple in memory, and an object where it is written.
            if example != "DueWork":
                msgspec.json.decode(json.dumps(one), type=OBJECTS[example])
    assert reached == set(OBJECTS)


def test_what_is_versions_hand_has_the_fields_that_are_documented() -> None:
    settings = load().settings
    made = {
        "ParquetSchema": load().store.get(*settings.layout.parquet_schema(1)),
    }
    assert made.keys() == WRITTEN_BY_HAND
    for name, body in made.items():
        assert keys_of(body) == set(TYPES[name].fields) == set(EXAMPLES[name])


def test_what_a_run_writes_has_the_fields_that_are_documented() -> None:
    stored = load()
    stored.add("json/new.json", b'{"id": 1}\n')
    stored.add("json/new-2.json", b'{"id": 2}\n')
    stored.clock.advance(8 * 86_400)
    stored.run()
    state, run = stored.store.contents("lake", STATE), f"{STATE}runs/today-1/"
    log = f"{STATE}partitions/json/"
    number = f"{3:020d}"
    written = {
        "Entry": f"{log}commits/{number}.json.gz",
        "Checkpoint": f"{log}commits/{number}.checkpoint.json.gz",
        "CleanUpRecord": f"{log}cleaned/{2:020d}.json",
        "Discovery": f"{run}discovery.json",
        "Receipt": f"{run}receipts/json-24f2fc4407899db1.json",
        "CleanUpReceipt": f"{run}clean-ups/json-24f2fc4407899db1.json",
        "RunReport": f"{run}report.json",
        "RunHistory": f"{STATE}run-history.json",
    }
    for name, key in written.items():
        assert keys_of(state[key]) == set(table_of(name)), name
    require_ways(stored.store)
    # That of a table where there is one, below; of a round in test_rounds, of maintenance further
    # below.
    others = {"ProbeRecord", "TableReceipt", "Round"}
    # Compared in test_leases.
    others |= {"Lease", *MAINTENANCE_RUN}
    assert {*others, *written} >= set(NUMBERED)


def test_what_a_maintenance_run_leaves_has_the_fields_that_are_documented() -> None:
    state, store = parse_location(f"s3://lake/{STATE}"), MemoryStore()
    store.add_bucket("lake")
    order = Order(run_id="run-1", table="glue:bronze.events", engine="athena")
    receipt = MaintenanceReceipt(table=order.table, run_id="run-1", engine="athena")
    write_order(order, state, store)
    write_receipt(receipt, state, store)
    plan = {"table": order.table, "run_id": "run-1", "engine": "athena"}
    write_outcome(outcome_of(plan, order, receipt), state, store)
    store.put(*places.list_key(state, "run-1"), b'[{"table": "glue:bronze.events"}]')
    report_on("run-1", "", "", state=state, store=store)
    require_ways(store)
    for name, find in MAINTENANCE_RUN.items():
        bucket, key = find(state, order.address)
        assert keys_of(store.get(bucket, key)) == set(table_of(name)), name


# Kind -> where a run leaves one.
MAINTENANCE_RUN: dict[str, Callable[[S3Uri, TableAddress], tuple[str, str]]] = {
    "Order": lambda state, table: places.order_key(state, "run-1", table),
    "MaintenanceReceipt": lambda state, table: places.receipt_key(state, "run-1", table),
    "Outcome": lambda state, table: places.outcome_key(state, "run-1", table),
    "TablesReport": lambda state, _: places.report_key(state, "run-1"),
}
_UNITS = ("econds", "US dollars")


@pytest.mark.parametrize("name", [*MAINTENANCE_RUN, "RewrittenPartition", "Estimate", "Totals"])
def test_each_number_of_a_maintenance_run_that_is_no_count_has_its_unit(name: str) -> None:
    numbers = {field for field, (kind, _) in table_of(name).items() if kind.startswith("float")}
    meanings = TYPES[name].meanings
    assert [one for one in numbers if not any(unit in meanings[one] for unit in _UNITS)] == []


def test_what_a_publisher_leaves_has_the_fields_that_are_documented(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("compactor.sinks.table_log._ENTRIES_A_CHECKPOINT", 1)
    tables = Tables("iceberg")
    tables.compact("a.json")
    tables.publish()
    state = tables.store.contents("lake", STATE)
    number = f"{1:020d}"
    written = {
        "TableEntry": f"{STATE}table/{number}.json",
        "PublishedMark": f"{STATE}table/{number}.published.json",
        "TableCheckpoint": f"{STATE}table/{number}.checkpoint.json",
        "TableHint": f"{STATE}table/hint.json",
        "TableReceipt": f"{STATE}runs/publisher-1/table.json",
    }
    for name, key in written.items():
        assert keys_of(state[key]) == set(table_of(name)), name
        assert any(one.fullmatch(key.removeprefix(STATE)) for one in PATTERNS)
    require_ways(tables.store)
    left = {key for key in state if "/table/" in key}
    assert left == {key for key in written.values() if "/table/" in key}
    entry = json.loads(state[written["TableEntry"]])
    assert set(entry["outputs"][0]) == set(table_of("NamedOutput"))
    assert set(entry["through"][PARTITION.path]) == set(table_of("Reached"))


def test_the_examples_of_lists_settings_and_spark_are_read() -> None:
    given = EXAMPLES["settings"]
    assert set(given) == set(FIELDS)
    assert Settings.from_input(given).to_dict() == given
    items, due = EXAMPLES["Partition"], EXAMPLES["DueWork"]
    assert [msgspec.to_builtins(partition_from(item)) for item in items] == items
    assert [one.to_dict() for one in read_due(json.dumps(due).encode())] == due
    spark = json.dumps(EXAMPLES["spark"])
    assert msgspec.json.decode(spark, type=SparkErrorLine).error == "IntegrityError"


@pytest.mark.parametrize("name", versions())
def test_every_object_of_a_state_has_a_key_that_is_documented(name: str) -> None:
    assert len(PATTERNS) > 20
    for key in load(name).store.contents("lake", STATE):
        assert any(one.fullmatch(key.removeprefix(STATE)) for one in PATTERNS), key
    assert not any(one.fullmatch("partitions/a/b/0001.json") for one in PATTERNS)


def test_the_name_of_a_partition_is_the_one_that_is_shown() -> None:
    told = re.search(r"`([^`]+)`\s+is\s+`(\S+-[0-9a-f]{16})`", TEXT)
    assert told is not None
    assert Partition("source", "", told[1]).id == told[2]
