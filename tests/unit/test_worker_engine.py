"""Which tables the worker rewrites, and which go to Spark or Athena: a case for each reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from compactor.sizes import GIB, MIB
from compactor_tables.costs import ENGINES, SPARK, WORKER
from compactor_tables.metadata.measured_iceberg import measured
from compactor_tables.metadata.measuring import measure_table
from compactor_tables.policies import read_policies
from compactor_tables.table_planning import TablePlan, plan_table
from tests.support.maintained_tables import IcebergLake, Named

DAY = 86_400.0
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "kind", StringType(), required=False),
)
BY_KIND = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "kind"))
SMALL = [Named(size=MIB)] * 8


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path)


def small(lake: IcebergLake, **properties: Any) -> Table:
    table = lake.create("events", SCHEMA, **properties)
    lake.name(table, SMALL)
    return table


def planned(
    lake: IcebergLake, engines: Any = ENGINES, *, days: float = 1, **rule: Any
) -> TablePlan:
    measure = measure_table(lake.address("events"), lake.store, 0.0)
    now = (measure.last_commit or 0.0) + days * DAY
    return plan_table(measure, read_policies([{"match": ["*"], **rule}]).of("any"), now, engines)


def reason(found: TablePlan) -> str:
    assert found.engine == SPARK, found.reason
    return found.unable[WORKER]


def test_the_worker_takes_what_it_can(lake):
    small(lake)
    found = planned(lake)
    assert (found.engine, found.steps) == (WORKER, ("rewrite",))
    assert found.rewrite.files == 8
    assert 0 < found.costs[WORKER] < found.costs[SPARK]


def test_a_rule_may_name_spark(lake):
    small(lake)
    assert planned(lake, engine="spark").engine == SPARK


def test_the_worker_takes_position_deletes(lake):
    table = small(lake)
    lake.delete(table, [Named(size=1_000)])
    found = planned(lake)
    assert (found.engine, found.steps) == (WORKER, ("rewrite",))


def test_equality_deletes(lake):
    table = small(lake)
    lake.delete(table, [Named(size=1_000)], content=DataFileContent.EQUALITY_DELETES)
    assert reason(planned(lake)) == "it has equality deletes"


def test_version_3(lake):
    table = small(lake)
    # pyiceberg reads such tables, and makes none.
    given = json.loads(table.metadata.model_dump_json()) | {"format-version": 3, "next-row-id": 0}
    newer = TableMetadataUtil.parse_obj(given)
    found = Table(table.name(), newer, table.metadata_location, table.io, lake.catalog)
    assert measured(found, "any", 0.0).spark_only == "it is of version 3 of Iceberg"


def test_files_of_another_format(lake):
    table = lake.create("events", SCHEMA)
    lake.name(table, SMALL, FileFormat.ORC)
    assert reason(planned(lake)) == "it has files of ORC"


def test_a_sorted_table(lake):
    order = SortOrder(SortField(source_id=1, transform=IdentityTransform()))
    lake.catalog.create_table("db.events", SCHEMA, "s3://lake/events", sort_order=order)
    lake.name(lake.catalog.load_table("db.events"), SMALL)
    assert reason(planned(lake)).startswith("it is sorted by 1 ASC")


def test_encrypted_files(lake):
    small(lake, **{"encryption.key-id": "a"})
    assert reason(planned(lake)) == "its files are encrypted"


@pytest.mark.parametrize(("name", "value"), [("sort", ["id"]), ("zorder", ["id"])])
def test_a_rule_that_orders_rows(lake, name, value):
    small(lake)
    assert reason(planned(lake, **{name: value})) == f"the worker does not rewrite by {name}"


def test_more_bytes_than_a_worker_rewrites(lake):
    table = lake.create("events", SCHEMA)
    lake.name(table, [Named(size=300 * MIB)] * 30)
    assert reason(planned(lake)) == "a worker rewrites at most 8.0 GiB, and 8.8 GiB are to be"
    assert planned(lake, most_bytes=8 * GIB).rewrite.files == 0


def test_files_of_an_older_partition_spec(lake):
    table = lake.create("events", SCHEMA, BY_KIND)
    lake.name(table, [Named(size=MIB, partition=("a",))] * 8)
    with table.update_spec() as update:
        update.add_field("id", IdentityTransform(), "id")
    assert reason(planned(lake)) == "the worker leaves files of an older partition spec"


def test_old_snapshots_are_left_to_another_engine_once_a_week(lake):
    table = small(lake)
    lake.name(table, SMALL)
    assert planned(lake, days=13).engine == WORKER
    found = planned(lake, days=15)
    assert reason(found) == "the worker only rewrites, and old versions have to go"
    assert "expire" in found.steps
    assert planned(lake, [WORKER], days=15).engine == WORKER
