"""The table that query engines read: rights to switch its partitions, and to look them up."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aws_cdk import Stack

from cdk.config import Config
from cdk.grants import Role, allow, may_put, may_read
from cdk.storage import Place, Storage
from compactor.layout import READERS
from compactor.settings.reader_table import manifests_of
from compactor.settings.tables import parse_table

_ASKING = ("glue:BatchGetPartition",)
# A missing table is created; nothing of it is deleted.
_SWITCHING = (
    "glue:BatchCreatePartition",
    "glue:BatchGetPartition",
    "glue:BatchUpdatePartition",
    "glue:CreateTable",
    "glue:GetTable",
)


@dataclass(frozen=True, slots=True)
class ReaderTable:
    """Locations and Glue resources of a deployment's readers' table.

    Attributes:
        lists: where the lists of objects are stored that its partitions show.
        state: where clean-up records what the partitions were seen to show.
        catalog_arns: the resources in Glue: catalog, database and table.
    """

    lists: Place
    state: Place
    catalog_arns: tuple[str, ...]


def reader_table_of(stack: Stack, config: Config, storage: Storage) -> ReaderTable | None:
    """Return the readers' table of a deployment; None without one."""
    run, outputs = config.run, storage.destination
    if run.reader_table is None:
        return None
    lists = replace(outputs, prefix=manifests_of(run.destination).prefix)
    return ReaderTable(lists, storage.state, _arns(stack, run.reader_table))


def may_switch(role: Role, table: ReaderTable) -> None:
    """Allow creating a missing table, and switching its partitions.

    For roles that may compact, which can read sources, outputs and state already.
    """
    may_read(role, table.lists)
    may_put(role, table.lists, "p-*/manifest")
    allow(role, _SWITCHING, table.catalog_arns)


def may_ask_readers(role: Role, table: ReaderTable) -> None:
    """Allow checking which sources may still be read, and recording since when that was so."""
    may_read(role, table.lists)
    may_put(role, table.state, f"{READERS}switches/*.json")
    allow(role, _ASKING, table.catalog_arns)


def _arns(stack: Stack, text: str) -> tuple[str, ...]:
    database, name = parse_table(text).name
    parts = [("catalog", None), ("database", database), ("table", f"{database}/{name}")]
    return tuple(
        stack.format_arn(service="glue", resource=resource, resource_name=name)
        for resource, name in parts
    )
