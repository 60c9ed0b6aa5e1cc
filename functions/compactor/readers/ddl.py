"""SQL that creates the readers' table in Athena ("CREATE TABLE" in its user guide). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def create_table(table: Mapping[str, Any], database: str) -> str:
    """Return ``CREATE EXTERNAL TABLE`` for a table in the form of Glue's API (``TableInput``).

    Args:
        table: the table.
        database: to create it in.
    """
    descriptor = table["StorageDescriptor"]
    columns = ",\n".join(f"  {_name(c['Name'])} {c['Type']}" for c in descriptor["Columns"])
    keys = ", ".join(f"{_name(one['Name'])} {one['Type']}" for one in table["PartitionKeys"])
    serde = descriptor["SerdeInfo"]
    properties = {name: one for name, one in table["Parameters"].items() if name != "EXTERNAL"}
    with_serde = _pairs(serde["Parameters"])
    return "\n".join(
        [
            f"CREATE EXTERNAL TABLE {_name(database)}.{_name(table['Name'])} (",
            columns,
            ")",
            f"PARTITIONED BY ({keys})",
            f"ROW FORMAT SERDE {_text(serde['SerializationLibrary'])}",
            *([f"WITH SERDEPROPERTIES ({with_serde})"] if with_serde else []),
            f"STORED AS INPUTFORMAT {_text(descriptor['InputFormat'])}",
            f"OUTPUTFORMAT {_text(descriptor['OutputFormat'])}",
            f"LOCATION {_text(descriptor['Location'])}",
            f"TBLPROPERTIES ({_pairs(properties)});",
        ]
    )


def _name(name: str) -> str:
    """Quote an identifier for Hive DDL."""
    return "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    """Quote a string for Hive DDL, which has backslash escapes."""
    for plain, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f"'{text}'"


def _pairs(pairs: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(name)} = {_text(value)}" for name, value in sorted(pairs.items()))
