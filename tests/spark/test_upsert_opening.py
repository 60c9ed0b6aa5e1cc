"""Spark's settings for a table with a key, and how a job ends whose table is not merged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compactor.partition.receipts import Receipt
from compactor.s3.store import make_client
from compactor.settings.settings import Settings
from compactor.settings.tables import parse_table
from compactor.sinks.table_catalog import TableFile
from compactor.sinks.table_receipts import TableReceipt
from compactor.sinks.upserts import UpsertCounts
from compactor_spark.opening import delta_settings, iceberg_settings
from compactor_spark.outcome import Outcome
from compactor_spark.upsert.merging import StagedOutputs
from compactor_spark.upsert.opening import start_settings
from tests.support.examples import settings
from tests.support.memory_store import MemoryStore
from tests.support.world import World

ICEBERG, DELTA = "IcebergSparkSessionExtensions", "DeltaSparkSessionExtension"


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)


def keyed(table: str) -> Settings:
    place = {"s3_destination_uri": "s3://lake/t/_c/"} if table.startswith("delta") else {}
    return settings(table=table, upsert_key=["id"], **place)


def test_spark_is_started_with_the_extensions_of_the_table_beside_those_it_was_given() -> None:
    name = "spark.sql.extensions"
    assert start_settings(settings(), {name: "other.Extension"}) == {}
    assert start_settings(settings(table="glue:lake.people"), {}) == {}
    found = start_settings(keyed("glue:lake.people"), {name: "other.Extension, more.Extension"})
    assert found[name].startswith("other.Extension,more.Extension,org.apache.iceberg.")
    assert found[name].endswith(ICEBERG)
    assert start_settings(keyed("glue:lake.people"), found) == found
    found = start_settings(keyed("delta:s3://lake/t/"), {})
    assert found[name].endswith(DELTA)
    assert found["spark.sql.catalog.spark_catalog"].endswith("DeltaCatalog")
    # Somebody's own catalog stands.
    given = {"spark.sql.catalog.spark_catalog": "my.Catalog"}
    assert set(start_settings(keyed("delta:s3://lake/t/"), given)) == {name}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            "glue:lake.people",
            {
                "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
                # The role of a deployment may not.
                "s3.delete-enabled": "false",
            },
        ),
        ("rest:https://c/v1#a.people", {"type": "rest", "uri": "https://c/v1"}),
        ("sql:sqlite:////data/c.db#a.people", {"type": "jdbc", "uri": "jdbc:sqlite:/data/c.db"}),
    ],
)
def test_each_catalog_of_iceberg_gets_its_address(table: str, said: Mapping[str, str]) -> None:
    client = make_client()
    found = iceberg_settings(parse_table(table), client, "s3://lake/t.table", deletes=False)
    of_catalog = {name.removeprefix("spark.sql.catalog.compactor."): value
                  for name, value in found.items()}  # fmt: skip
    assert said.items() <= of_catalog.items()
    assert of_catalog["client.region"] == "eu-central-1"
    # AWS's own endpoint needs no telling, another one does.
    assert "s3.endpoint" not in of_catalog
    here = iceberg_settings(
        parse_table(table), make_client("http://127.0.0.1:9"), "s3://lake/t.table"
    )
    assert here["spark.sql.catalog.compactor.s3.endpoint"] == "http://127.0.0.1:9"
    assert ("warehouse" in of_catalog) == (not table.startswith("rest"))


def test_delta_reads_s3_by_hadoop() -> None:
    assert "fs.s3a.endpoint" not in delta_settings(make_client())
    found = delta_settings(make_client("http://127.0.0.1:9"))
    assert found["fs.s3a.endpoint"] == "http://127.0.0.1:9"
    assert found["fs.s3.impl"].endswith("S3AFileSystem")


KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd"


@pytest.mark.parametrize(
    ("value", "by_iceberg", "by_hadoop"),
    [
        ("none", {}, {}),
        ("AES256", {"type": "s3"}, {"algorithm": "AES256"}),
        ("aws:kms", {"type": "kms"}, {"algorithm": "SSE-KMS"}),
        (KEY, {"type": "kms", "key": KEY}, {"algorithm": "SSE-KMS", "key": KEY}),
    ],
)
def test_spark_names_the_encryption_of_its_writes(
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    by_iceberg: Mapping[str, str],
    by_hadoop: Mapping[str, str],
) -> None:
    monkeypatch.setenv("COMPACTOR_ENCRYPTION", value)
    address = parse_table("glue:lake.people")
    found = iceberg_settings(address, make_client(), "s3://lake/t.table")
    prefix = "spark.sql.catalog.compactor.s3.sse."
    named = {name.removeprefix(prefix): one for name, one in found.items() if prefix in name}
    assert named == by_iceberg
    prefix = "fs.s3a.encryption."
    found = delta_settings(make_client())
    named = {name.removeprefix(prefix): one for name, one in found.items() if prefix in name}
    assert named == by_hadoop
    monkeypatch.setenv("COMPACTOR_ENCRYPTION", f"none,raw={value}")
    assert prefix not in str(delta_settings(make_client()))
    if by_hadoop:
        name = "fs.s3a.bucket.raw.encryption.algorithm"
        assert delta_settings(make_client())[name] == by_hadoop["algorithm"]


def test_a_job_whose_table_is_not_merged_has_failed() -> None:
    done = Receipt("a/", "run-1", status="done")
    told = TableReceipt(status="failed", error="IntegrityError", cause="it was\nrolled back")
    assert Outcome.of([done], TableReceipt(status="done")).exit_code == 0
    outcome = Outcome.of([done], told)
    assert outcome.exit_code == 1
    assert outcome.line == "failed: IntegrityError: the table: IntegrityError: it was rolled back"
    assert outcome.document()["partitions"]["done"] == 1
    left = TableReceipt(status="done", faults=["a/: its log has no entry 2"])
    assert Outcome.of([done], left).line.startswith("failed: NotMerged: the table: a/: its log")


def test_outputs_pass_through_the_disk_once_and_only_while_they_are_needed() -> None:
    store: MemoryStore = World().store
    files = []
    for name in ("a", "b", "c"):
        store.put("lake", f"compacted/{name}.parquet", name.encode())
        files.append(TableFile("lake", f"compacted/{name}.parquet", 1, 1))
    before = len(store.calls)
    with StagedOutputs(store, "staged") as outputs:
        first = [Path(uri.removeprefix("file://")) for uri in outputs.uris(files[:2])]
        assert [path.read_text() for path in first] == ["a", "b"]
        assert [Path(uri.removeprefix("file://")) for uri in outputs.uris(files[:2])] == first
        outputs.uris(files[1:])
        assert [path.exists() for path in first] == [False, True]
        directory = first[0].parent
    assert not directory.exists()
    assert len(store.calls) == before + 3
    with StagedOutputs(store, "s3") as outputs:
        assert outputs.uris(files[:1]) == ["s3://lake/compacted/a.parquet"]


def test_counts_are_reported_with_the_table() -> None:
    counts: Any = UpsertCounts(7, 1, 2, 1, 1, 2)
    receipt = TableReceipt(table="glue:a.b", outputs=2, upserts=counts)
    told = "7 records in glue:a.b: 1 inserted, 2 updated, 1 deleted, 1 superseded, 2 stale"
    assert receipt.line == f"table: 2 outputs, {told}"
