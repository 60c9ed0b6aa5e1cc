"""The table that outputs are published to: what of it a role must reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Stack

from cdk.config import Config
from cdk.grants import Role, allow, may_read, may_write
from cdk.storage import Place, Storage

# What Iceberg's commits write, below the table's location.
_METADATA = "metadata/*"


@dataclass(frozen=True, slots=True)
class Table:
    """What a deployment knows of its Iceberg table.

    Attributes:
        place: where it lies.
        catalog_arns: what Glue asks for where it is changed: catalog, database and table.
    """

    place: Place
    catalog_arns: tuple[str, ...]


def table_of(stack: Stack, config: Config, storage: Storage) -> Table | None:
    """The table of a deployment; None without one."""
    address = config.run.table_address
    if address is None or storage.table is None:
        return None
    parts = {"database": address.name[0], "table": "/".join(address.name)}
    arns = [
        stack.format_arn(service="glue", resource=resource, resource_name=name)
        for resource, name in parts.items()
    ]
    return Table(storage.table, (stack.format_arn(service="glue", resource="catalog"), *arns))


def may_ask_table(role: Role, table: Table) -> None:
    """Read a table's metadata."""
    may_read(role, table.place)
    allow(role, ["glue:GetTable"], table.catalog_arns)


def may_publish(role: Role, table: Table) -> None:
    """Make the table where it is missing, and commit to it; nothing of it can be deleted."""
    may_read(role, table.place)
    may_write(role, table.place, _METADATA)
    calls: Sequence[str] = (
        "glue:GetDatabase",
        "glue:GetTable",
        "glue:CreateTable",
        "glue:UpdateTable",
    )
    allow(role, calls, table.catalog_arns)
