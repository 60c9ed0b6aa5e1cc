"""Upserts by the protocol of REST catalogs: Iceberg's own client, before pyiceberg's rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from compactor.errors import TableConflict
from compactor_spark.upsert.iceberg import IcebergTables
from tests.spark.upsert_world import LOG_ID, UpsertWorld, histories, winning
from tests.support.rest_catalog import RestCatalog, rest_catalog

_CATALOG = "spark.sql.catalog.rested"


@pytest.fixture
def catalog(tables: SparkSession, tmp_path: Path) -> Iterator[RestCatalog]:
    with rest_catalog(tmp_path) as running:
        settings = {
            _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
            f"{_CATALOG}.type": "rest",
            f"{_CATALOG}.uri": running.uri,
            f"{_CATALOG}.cache-enabled": "false",
        }
        for name, value in settings.items():
            tables.conf.set(name, value)
        tables.sql("CREATE NAMESPACE rested.db")
        yield running


class Overtaken(IcebergTables):
    """Somebody else commits between the last look at the table and the commit."""

    def _commit(self, *given: Any) -> None:
        self.session.sql("INSERT INTO rested.db.rows (k, part, v) VALUES ('foreign', 0, 'theirs')")
        super()._commit(*given)


def test_a_rest_catalog_has_the_last_record_of_each_key_and_refuses_who_was_overtaken(
    catalog: RestCatalog, tables: SparkSession, tmp_path: Path
) -> None:
    world = UpsertWorld(IcebergTables(tables), "rested.db.rows", tmp_path)
    records = histories(60, seed=6)
    world.entry(records[:100])
    world.publish(world.table())
    assert world.rows() == winning(world.records)
    world.entry(records[100:])

    with pytest.raises(TableConflict, match=r"^rested\.db\.rows: "):
        world.publish(world.table(Overtaken(tables)))
    table = world.table()
    state = table.load(LOG_ID)
    assert state is not None
    assert (state.last, state.fault) == (1, "")
    world.publish(table)

    assert world.rows() == {**winning(world.records), ("foreign", 0): "theirs"}
    # Made with its first commit; then compared by where main stands.
    assert catalog.commits[0] == {"assert-create"}
    assert {"assert-table-uuid", "assert-ref-snapshot-id"} <= catalog.commits[-1]
