"""Trino reads the manifest table by the statement that the documentation has for Athena."""

from __future__ import annotations

import base64
import re
from datetime import timedelta
from pathlib import Path

import boto3
import pytest

from compactor_dev.trino import build
from compactor_dev.trino.server import Places, running
from tests.support.cleaning import DAY
from tests.support.reader_lake import reader_lake
from tests.unit.test_manifest_table import (
    DOCUMENT,
    JSON,
    TABLE,
    TODAY,
    exported,
    objects,
    void_and_again,
    world_of,
)


def create_as_athena_would(statement: str) -> None:
    """What the statement says, as a table of Glue."""
    named = re.findall(r"^  `?(\w+)`? (\w+),?$", statement, re.MULTILINE)
    (day,) = re.findall(r"PARTITIONED BY \((\w+) (\w+)\)", statement)
    (location,) = re.findall(r"LOCATION '([^']+)'", statement)
    _, _, properties = statement.partition("TBLPROPERTIES")
    hive = "org.apache.hadoop.hive.ql.io.parquet"
    glue = boto3.client("glue")
    glue.create_table(
        DatabaseName="lake",
        TableInput={
            "Name": "sources",
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {
                "EXTERNAL": "TRUE",
                **dict(re.findall(r"'([^']+)' = '([^']+)'", properties)),
            },
            "PartitionKeys": [{"Name": day[0], "Type": day[1]}],
            "StorageDescriptor": {
                "Columns": [{"Name": name, "Type": kind} for name, kind in named],
                "Location": location,
                "InputFormat": f"{hive}.MapredParquetInputFormat",
                "OutputFormat": f"{hive}.MapredParquetOutputFormat",
                "SerdeInfo": {"SerializationLibrary": f"{hive}.serde.ParquetHiveSerDe"},
            },
        },
    )


def test_trino_reads_the_export_and_finds_new_days_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = build.find()
    if here is None:
        pytest.skip("no Trino here: make servers fetches it")
    world = world_of()
    world.add_variety()
    world.run()
    void_and_again(world)
    (statement,) = re.findall(
        r"```sql\n(CREATE EXTERNAL TABLE sources.*?;)\n```", DOCUMENT.read_text(), re.DOTALL
    )
    # The clock of the test is ahead of that of Trino.
    statement = statement.replace(",NOW'", f",{TODAY + timedelta(days=30)}'")
    with reader_lake(tmp_path, monkeypatch) as (lake, url):
        create_as_athena_would(statement)

        def put() -> None:
            for name, body in objects(world).items():
                lake.s3.put_object(Bucket="my-lake", Key=TABLE + name, Body=body)

        put()
        with running(here, Places(url, url), tmp_path / "trino", quick=True) as trino:
            asked = (
                'SELECT source_key, etag, size, to_unixtime(committed_at), output, "offset",'
                " length, exact, to_base64(dropped_prefix), commit FROM lake.sources"
            )

            def told() -> list[tuple[object, ...]]:
                return sorted(map(tuple, trino.ask(asked)), key=repr)

            def expected() -> list[tuple[object, ...]]:
                rows = [
                    (
                        row[2], row[3], row[4], row[5].timestamp(), row[6], row[9], row[10],
                        row[14], base64.b64encode(row[15]).decode(), row[19],
                    )
                    for row in exported(world)
                ]  # fmt: skip
                return sorted(rows, key=repr)

            assert told() == expected() != []
            world.clock.advance(DAY)
            world.add("z.json", JSON)
            world.run()
            put()
            assert told() == expected()
            newest = TODAY + timedelta(days=2)
            one_day = f"SELECT source_key FROM lake.sources WHERE output_date = '{newest}'"  # noqa: S608 - a day
            assert [key.rpartition("/")[2] for (key,) in trino.ask(one_day)] == ["z.json"]
