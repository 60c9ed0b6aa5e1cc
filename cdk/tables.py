"""The table that outputs are published to: which kind it is, and what of it a role must reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Stack

from cdk.config import TABLE_KINDS, Config
from cdk.grants import Role, allow, may_read, may_write
from cdk.storage import Place, Storage


@dataclass(frozen=True, slots=True)
class Table:
    """What a deployment knows of its table.

    Attributes:
        kind: a key of :data:`cdk.bundling.TABLE_REQUIREMENTS`.
        place: where it lies.
        metadata: below that, what a commit writes.
        catalog_arns: what a change of it in Glue's catalog is asked for: catalog, database, table;
            empty for a table that stands in no catalog.
    """

    kind: str
    place: Place
    metadata: str
    catalog_arns: tuple[str, ...]


def table_of(stack: Stack, config: Config, storage: Storage) -> Table | None:
    """The table of a deployment; None without one."""
    address = config.run.table_address
    if address is None or storage.table is None:
        return None
    kind = TABLE_KINDS[address.kind]
    if kind == "delta":
        return Table(kind, storage.table, "_delta_log/*", ())
    parts = {"database": address.name[0], "table": "/".join(address.name)}
    arns = [
        stack.format_arn(service="glue", resource=resource, resource_name=name)
        for resource, name in parts.items()
    ]
    catalog = stack.format_arn(service="glue", resource="catalog")
    return Table(kind, storage.table, "metadata/*", (catalog, *arns))


def may_ask_table(role: Role, table: Table) -> None:
    """Read a table's metadata."""
    may_read(role, table.place)
    _allow_catalog(role, table, ["glue:GetTable"])


def may_publish(role: Role, table: Table) -> None:
    """Make the table where it is missing, and commit to it; nothing of it can be deleted."""
    may_read(role, table.place)
    may_write(role, table.place, table.metadata)
    calls = ["glue:GetDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable"]
    _allow_catalog(role, table, calls)


def _allow_catalog(role: Role, table: Table, actions: Sequence[str]) -> None:
    if table.catalog_arns:
        allow(role, actions, table.catalog_arns)
