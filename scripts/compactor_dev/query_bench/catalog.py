"""The layouts as tables of the embedded Glue, for engines that read tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.local.embedded import EmbeddedS3
from compactor_dev.query_bench.layouts import Layout
from compactor_dev.query_bench.sets import DAYS, QuerySet, day_value

DATABASE = "lake"
_COLUMNS = (
    ("event_id", "string"),
    ("level", "string"),
    ("service", "string"),
    ("http", "struct<bytes:bigint>"),
    ("message", "string"),
)
_HIVE = "org.apache.hadoop.hive.ql.io"
_JSON = (
    "org.openx.data.jsonserde.JsonSerDe",
    "org.apache.hadoop.mapred.TextInputFormat",
    f"{_HIVE}.HiveIgnoreKeyTextOutputFormat",
)
_PARQUET = (
    f"{_HIVE}.parquet.serde.ParquetHiveSerDe",
    f"{_HIVE}.parquet.MapredParquetInputFormat",
    f"{_HIVE}.parquet.MapredParquetOutputFormat",
)


def table_name(given: QuerySet, layout: Layout) -> str:
    """The table of a set in a layout; ``compactor`` makes that of ``exact``."""
    return f"{given.name}_{layout.name}".replace("-", "_")


def put_tables(embedded: EmbeddedS3, given: QuerySet, layouts: Sequence[Layout]) -> None:
    """A table for each layout, with a partition for each day."""
    glue: Any = embedded.client("glue")
    for layout in layouts:
        name = table_name(given, layout)
        locations = [f"s3://{place.rpartition('/')[0]}/" for place in layout.places(given, "count")]
        table = {
            "Name": name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {"EXTERNAL": "TRUE"},
            "PartitionKeys": [{"Name": "dt", "Type": "string"}],
            "StorageDescriptor": _stored(layout, f"s3://{layout.bucket}/"),
        }
        glue.create_table(DatabaseName=DATABASE, TableInput=table)
        partitions = [
            {
                "Values": [day_value(day)],
                "StorageDescriptor": _stored(layout, locations[day]),
            }
            for day in range(DAYS)
        ]
        glue.batch_create_partition(
            DatabaseName=DATABASE, TableName=name, PartitionInputList=partitions
        )


def _stored(layout: Layout, location: str) -> Mapping[str, Any]:
    serde, reads, writes = _PARQUET if layout.parquet else _JSON
    return {
        "Columns": [{"Name": name, "Type": kind} for name, kind in _COLUMNS],
        "Location": location,
        "InputFormat": reads,
        "OutputFormat": writes,
        "SerdeInfo": {"SerializationLibrary": serde},
    }
