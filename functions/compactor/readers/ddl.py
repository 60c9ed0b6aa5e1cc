"""SQL for Athena: the readers' table, and a view for who may not change a catalog. Pure.

Sources: "CREATE TABLE", "ALTER TABLE ADD PARTITION" and "CREATE VIEW" in the Athena user guide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor.errors import InvalidInput

#: Athena takes a statement of 262,144 bytes.
LONGEST_STATEMENT = 262_144


def create_table(table: Mapping[str, Any], database: str) -> str:
    """``CREATE EXTERNAL TABLE`` for a table as Glue's API has it (``TableInput``).

    Args:
        table: the table.
        database: in which it is made.
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


def add_partition(
    table: tuple[str, str], keys: Sequence[str], values: Sequence[str], location: str
) -> str:
    """``ALTER TABLE ADD PARTITION``; for a table of outputs or of sources alone.

    Args:
        table: database and name.
        keys: names of the partition columns.
        values: of one partition.
        location: where its objects lie.
    """
    spec = ", ".join(
        f"{_name(key)} = {_literal(value)}" for key, value in zip(keys, values, strict=True)
    )
    name = ".".join(map(_name, table))
    return f"ALTER TABLE {name} ADD IF NOT EXISTS PARTITION ({spec}) LOCATION {_text(location)};"


def exact_view(view: str, sources: str, outputs: str, held: Sequence[str]) -> str:
    """A view of each record once over a table of sources and one of outputs.

    Exact as of the moment: of sources that are compacted later both are shown, until the view is
    made anew.

    Args:
        view: its name, quoted as it has to be; likewise
        sources: the table of the sources;
        outputs: the table of the outputs.
        held: URIs of the sources that stand and that outputs hold.

    Raises:
        InvalidInput: they are too many for a statement.
    """
    listed = ",\n  ".join(map(_literal, held))
    condition = f'\nWHERE "$path" NOT IN (\n  {listed}\n)' if held else ""
    statement = (
        f"CREATE OR REPLACE VIEW {view} AS\nSELECT * FROM {outputs}\nUNION ALL\n"
        f"SELECT * FROM {sources}{condition};"
    )
    if len(statement.encode()) > LONGEST_STATEMENT:
        accepted = f"fewer sources than {len(held):,}: a table in Glue, or compactor table files"
        raise InvalidInput("view", view, accepted)
    return statement


def quoted(name: str) -> str:
    """A name of a table or view in a query."""
    return ".".join('"' + one.replace('"', '""') + '"' for one in name.split("."))


def _name(name: str) -> str:
    """In statements of Hive."""
    return "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    """In statements of Hive, whose strings have escapes."""
    for plain, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f"'{text}'"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _pairs(pairs: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(name)} = {_text(value)}" for name, value in sorted(pairs.items()))
