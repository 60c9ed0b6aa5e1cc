"""A table whose rows have a key: Spark's MERGE into Glue's catalog.

The real Iceberg, with its own GlueCatalog and S3FileIO, and Spark's own reads of S3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from compactor.settings.settings import Settings
from compactor_cli.machine.spark_submit import SparkMissing, find_spark
from tests.infrastructure.cloud.running import Cloud, cloud
from tests.support import glue_merging
from tests.support.server_builds import Unavailable, table_jars

pytestmark = pytest.mark.slow
_SETTINGS = Settings.from_input(
    {
        "s3_source_uri": "s3://logs/raw/",
        "s3_destination_uri": "s3://lake/compacted/",
        "table": "glue:lake.people",
        "upsert_key": ["id"],
        "order_by": ["at"],
        "delete_when": {"op": ["D"]},
        "parquet_schema": "id BIGINT, at BIGINT, op STRING, name STRING",
    }
)


def _change(key: int, at: int, name: str, op: str = "U") -> Mapping[str, Any]:
    return {"id": key, "at": at, "op": op, "name": name}


_RUNS = (
    (_change(1, 1, "Ann"), _change(2, 1, "Bob"), _change(3, 5, "Cid")),
    # An update, a delete, a late record.
    (_change(1, 2, "Anna"), _change(2, 2, "", "D"), _change(3, 4, "late")),
)


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Any:
    """moto with the buckets; whatever needs Spark and its jars is skipped without."""
    try:
        find_spark()
        table_jars()
    except (SparkMissing, Unavailable) as reason:
        pytest.skip(str(reason))
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "nobody")
    with cloud() as running:
        for bucket in ("logs", "lake"):
            running.create_bucket(bucket)
        yield running


def test_spark_merges_into_the_catalog_of_glue(on: Cloud) -> None:
    on.client("glue").create_database(DatabaseInput={"Name": "lake"})
    on.requests()
    results = [
        glue_merging.merge(on, _SETTINGS, f"run-{number}", records)
        for number, records in enumerate(_RUNS, 1)
    ]

    assert {one["partitions"]["done"] for one in results} == {1}
    rows = sorted(glue_merging.rows_of(on, "lake.people"), key=lambda row: int(row["id"]))
    assert rows == [_change(1, 2, "Anna"), _change(3, 5, "Cid")]
    place = "s3://lake/compacted.table/lake.db/people"
    assert glue_merging.location_of(on, "lake.people") == place
    assert glue_merging.location_of(on, "lake.people__keys") == f"{place}__keys"
    # What the policy of the nodes allows is these requests and no other.
    asked = {
        one.headers["target"].rpartition(".")[2] for one in on.requests() if one.service == "glue"
    }
    assert asked <= {"GetDatabase", "GetTable", "CreateTable", "UpdateTable"}
    assert {"CreateTable", "UpdateTable"} <= asked


def test_a_release_without_these_jars_is_reported_in_one_line(on: Cloud) -> None:
    nowhere = {"spark.jars": "/usr/share/aws/iceberg/no/such/iceberg-spark*runtime*.jar"}

    error = glue_merging.merge(on, _SETTINGS, "run-1", _RUNS[0], nowhere)

    assert error["error"] == "InvalidInput"
    assert "spark.jars" in error["cause"]
    assert "of a deployment the key spark.jars does" in error["cause"]
