"""Tables and partitions of a Hive metastore as Glue's API has them, and back. Asks nothing.

Glue's documents are the metastore's own, in other words (the Glue API's "StorageDescriptor
structure"; ``hive_metastore.thrift``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hive_metastore.ttypes import (
    FieldSchema,
    Order,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

from compactor.readers.port import CatalogChange, CatalogEntry, Values

_UNBUCKETED = -1
# What somebody counted of the objects that a partition showed before: Hive answers count(*) by it.
_COUNTED = frozenset(
    {
        "COLUMN_STATS_ACCURATE",
        "STATS_GENERATED",
        "numFiles",
        "numFilesErasureCoded",
        "numRows",
        "rawDataSize",
        "totalSize",
    }
)
_COUNTED_BY_SPARK = "spark.sql.statistics."
# FileUtils.escapePathName of Hive.
_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{[]^") | {chr(code) for code in range(1, 32)}
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def table_document(table: Table) -> dict[str, Any]:
    """A table as Glue has it (``Table``)."""
    return {
        "Name": table.tableName,
        "DatabaseName": table.dbName,
        "TableType": table.tableType,
        "Parameters": dict(table.parameters or {}),
        "PartitionKeys": _columns_of(table.partitionKeys),
        "StorageDescriptor": _descriptor_of(table.sd),
    }


def table_of(document: Mapping[str, Any], database: str) -> Table:
    """The table of a ``TableInput``."""
    return Table(
        tableName=document["Name"],
        dbName=database,
        tableType=document["TableType"],
        parameters=dict(document["Parameters"]),
        partitionKeys=_columns(document["PartitionKeys"]),
        sd=_descriptor(document["StorageDescriptor"]),
    )


def entry_of(partition: Partition) -> CatalogEntry:
    """A partition that the metastore has."""
    document = _descriptor_of(partition.sd)
    return CatalogEntry(
        tuple(partition.values),
        document["Location"],
        document["InputFormat"],
        dict(partition.parameters or {}),
        document,
    )


def added(change: CatalogChange, name: tuple[str, str]) -> Partition:
    """A partition that the metastore does not have yet."""
    database, table = name
    made = Partition(values=list(change.values), dbName=database, tableName=table)
    return switched(made, change)


def switched(partition: Partition, change: CatalogChange) -> Partition:
    """A partition that shows what it is to show; what a change says nothing of stays."""
    partition.sd = _descriptor(change.descriptor)
    partition.parameters = {
        name: value for name, value in change.parameters.items() if not _is_counted(name)
    }
    return partition


def is_made(entry: CatalogEntry | None, change: CatalogChange) -> bool:
    """True where the metastore has just what a change says."""
    if entry is None or entry.location.rstrip("/") != change.descriptor["Location"].rstrip("/"):
        return False
    return all(
        entry.parameters.get(name) == value
        for name, value in change.parameters.items()
        if not _is_counted(name)
    )


def partition_name(keys: Sequence[str], values: Values) -> str:
    """By which a metastore finds a partition: ``day=2026-01-31/hour=07``.

    Args:
        keys: names of the partition columns.
        values: of them.
    """
    pairs = zip(keys, values, strict=True)
    return "/".join(f"{_escaped(key.lower())}={_escaped(value)}" for key, value in pairs)


def _escaped(text: str) -> str:
    if not text:
        return _NO_VALUE
    return "".join(f"%{ord(one):02X}" if one in _ESCAPED else one for one in text)


def _is_counted(name: str) -> bool:
    return name in _COUNTED or name.startswith(_COUNTED_BY_SPARK)


def _descriptor_of(found: StorageDescriptor) -> dict[str, Any]:
    serde = found.serdeInfo or SerDeInfo()
    return {
        "Columns": _columns_of(found.cols),
        # The metastore drops the last slash when it makes a table or partition.
        "Location": f"{(found.location or '').rstrip('/')}/",
        "InputFormat": found.inputFormat or "",
        "OutputFormat": found.outputFormat or "",
        "Compressed": bool(found.compressed),
        "NumberOfBuckets": _UNBUCKETED if found.numBuckets is None else found.numBuckets,
        "SerdeInfo": {
            **({"Name": serde.name} if serde.name else {}),
            "SerializationLibrary": serde.serializationLib or "",
            "Parameters": dict(serde.parameters or {}),
        },
        "BucketColumns": list(found.bucketCols or []),
        "SortColumns": [
            {"Column": one.col, "SortOrder": one.order} for one in found.sortCols or []
        ],
        "Parameters": dict(found.parameters or {}),
        "StoredAsSubDirectories": bool(found.storedAsSubDirectories),
    }


def _descriptor(document: Mapping[str, Any]) -> StorageDescriptor:
    serde = document["SerdeInfo"]
    return StorageDescriptor(
        cols=_columns(document["Columns"]),
        location=document["Location"],
        inputFormat=document["InputFormat"],
        outputFormat=document["OutputFormat"],
        compressed=document.get("Compressed", False),
        numBuckets=document.get("NumberOfBuckets", _UNBUCKETED),
        serdeInfo=SerDeInfo(
            name=serde.get("Name"),
            serializationLib=serde["SerializationLibrary"],
            parameters=dict(serde["Parameters"]),
        ),
        bucketCols=list(document.get("BucketColumns", [])),
        sortCols=[
            Order(col=one["Column"], order=one["SortOrder"])
            for one in document.get("SortColumns", [])
        ],
        parameters=dict(document.get("Parameters", {})),
        storedAsSubDirectories=document.get("StoredAsSubDirectories", False),
    )


def _columns_of(columns: Sequence[FieldSchema] | None) -> list[dict[str, str]]:
    return [
        {"Name": one.name, "Type": one.type, **({"Comment": one.comment} if one.comment else {})}
        for one in columns or []
    ]


def _columns(documents: Sequence[Mapping[str, str]]) -> list[FieldSchema]:
    return [FieldSchema(one["Name"], one["Type"], one.get("Comment")) for one in documents]
