"""The table that outputs are published to, and the rights to it."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Stack

from cdk.config import Config
from cdk.grants import Role, allow, may_read, may_write
from cdk.storage import Place, Storage

# What Iceberg's commits write below a table's location, and what a MERGE writes in addition.
_METADATA, _DATA = "metadata/*", "data/*"
_ASKING = ("glue:GetTable",)
# Needed to create a table, and for each commit.
_COMMITTING = ("glue:GetDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable")


@dataclass(frozen=True, slots=True)
class Table:
    """A deployment's Iceberg table, and its key table if rows have a key.

    Attributes:
        places: their locations, the table of rows first.
        catalog_arns: the resources in Glue that changes need: catalog, database and tables.
        keyed: True if rows have a key; then Spark writes the tables.
    """

    places: tuple[Place, ...]
    catalog_arns: tuple[str, ...]
    keyed: bool


def table_of(stack: Stack, config: Config, storage: Storage) -> Table | None:
    """Return the table of a deployment; None without one."""
    address = config.run.table_address
    if address is None or not storage.tables:
        return None
    keyed = bool(config.run.upsert_key)
    names = (address.name, address.keys.name) if keyed else (address.name,)
    parts = [("catalog", None), ("database", address.name[0])]
    parts += [("table", "/".join(name)) for name in names]
    arns = [
        stack.format_arn(service="glue", resource=resource, resource_name=name)
        for resource, name in parts
    ]
    return Table(storage.tables, tuple(arns), keyed)


def may_ask_table(role: Role, table: Table) -> None:
    """Allow reading a table's metadata."""
    for place in table.places:
        may_read(role, place)
    allow(role, _ASKING, table.catalog_arns)


def may_publish(role: Role, table: Table) -> None:
    """Allow creating a missing table and committing to it, without deleting anything.

    If rows have a key, publishing only checks whether Spark has merged them, and may only read.
    """
    if table.keyed:
        may_ask_table(role, table)
    else:
        _may_commit(role, table, _METADATA)


def may_merge(role: Role, table: Table) -> None:
    """Allow creating both tables if missing and merging into them, without deleting anything.

    Files that a MERGE replaces belong to the table until its snapshots expire, and files of a
    commit that lost the race are orphans: the table's maintenance deletes both.
    """
    _may_commit(role, table, _METADATA, _DATA)


def _may_commit(role: Role, table: Table, *written: str) -> None:
    for place in table.places:
        may_read(role, place)
        for below in written:
            may_write(role, place, below)
    allow(role, _COMMITTING, table.catalog_arns)
