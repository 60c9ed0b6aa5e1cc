"""The table that outputs are published to: what of it a role must reach."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Stack

from cdk.config import Config
from cdk.grants import Role, allow, may_read, may_write
from cdk.storage import Place, Storage

# What Iceberg's commits write below a table's location, and what a MERGE writes beside it.
_METADATA, _DATA = "metadata/*", "data/*"
_ASKING = ("glue:GetTable",)
# Asked where a table is made, and by each commit.
_COMMITTING = ("glue:GetDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable")


@dataclass(frozen=True, slots=True)
class Table:
    """What a deployment knows of its Iceberg table, and of that of its keys where rows have one.

    Attributes:
        places: where they lie, the table of rows first.
        catalog_arns: what Glue asks for where they are changed: catalog, database and tables.
        keyed: whether rows have a key; then Spark writes them.
    """

    places: tuple[Place, ...]
    catalog_arns: tuple[str, ...]
    keyed: bool


def table_of(stack: Stack, config: Config, storage: Storage) -> Table | None:
    """The table of a deployment; None without one."""
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
    """Read a table's metadata."""
    for place in table.places:
        may_read(role, place)
    allow(role, _ASKING, table.catalog_arns)


def may_publish(role: Role, table: Table) -> None:
    """Make the table where it is missing, and commit to it; nothing of it can be deleted.

    Where rows have a key, who publishes only looks whether Spark has merged them.
    """
    if table.keyed:
        may_ask_table(role, table)
    else:
        _may_commit(role, table, _METADATA)


def may_merge(role: Role, table: Table) -> None:
    """Make both tables where they are missing, and merge into them; nothing can be deleted.

    What a MERGE replaces is the table's until its snapshots expire, and what a commit that lost
    has written is an orphan: both are for the maintenance of the table.
    """
    _may_commit(role, table, _METADATA, _DATA)


def _may_commit(role: Role, table: Table, *written: str) -> None:
    for place in table.places:
        may_read(role, place)
        for below in written:
            may_write(role, place, below)
    allow(role, _COMMITTING, table.catalog_arns)
