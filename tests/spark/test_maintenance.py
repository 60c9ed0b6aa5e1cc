"""Maintenance of tables that others write, with the real Iceberg and the real Delta."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from compactor.maintenance.orders import DELETES, MANIFESTS, REWRITE

pytestmark = pytest.mark.slow
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from tests.spark.maintenance_world import (  # noqa: E402 - needs both libraries
    DELTA,
    FILES,
    ICEBERG,
    Maintained,
    day,
    ids,
)

A, B = "2026-11-01", "2026-11-02"


@pytest.fixture(params=[ICEBERG, DELTA])
def table(request: pytest.FixtureRequest, tables: SparkSession, tmp_path: Path) -> Maintained:
    return Maintained(request.param, tables, tmp_path)


def test_a_partition_is_rewritten_with_the_same_rows_and_no_other_is_touched(
    table: Maintained,
) -> None:
    table.make(**({"write.delete.mode": "merge-on-read"} if table.kind == ICEBERG else
                  {"delta.enableDeletionVectors": "true"}))  # fmt: skip
    table.fill(A, B)
    table.delete("id IN (1, 7)")
    table.session.sql(f"ALTER TABLE {table.sql} ADD COLUMNS (extra MAP<STRING, DOUBLE>)")
    before = table.read()
    assert len(before) == 2 * 3 * FILES - 2
    order = table.order(day(A), steps=(REWRITE, DELETES, MANIFESTS))
    receipt = table.maintain(order)
    assert (receipt.status, receipt.cause) == ("done", "")
    (told,) = receipt.partitions
    assert (told.status, told.files, told.into, told.rows) == ("done", FILES, 1, 3 * FILES - 2)
    assert table.read() == before
    assert table.files() == {A: 1, B: FILES}
    # Stored before the first rewrite, after each partition, each step and at the end.
    assert [len(one.partitions) for one in table.saved] == [0, 1, 1, 1, 1]
    assert table.saved[0].undo == receipt.undo != ""
    print(receipt)
