"""The tables that a run writes: where they are, and the rights to them in S3 and Glue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from aws_cdk import Stack

from cdk.config import Deployment
from cdk.grants import Role, allow, may_put, may_read, may_write
from cdk.storage import Place, Storage
from compactor.settings.reader_table import manifests_of
from compactor.settings.tables import parse_table

# Needed to create a table, and for each commit.
_COMMITTING = ("glue:GetDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable")
# A missing table is created; nothing of it is deleted.
_SWITCHING = (
    "glue:BatchCreatePartition",
    "glue:BatchGetPartition",
    "glue:BatchUpdatePartition",
    "glue:CreateTable",
    "glue:GetTable",
)


def glue_arns(stack: Stack, names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the catalog, the databases and the tables, as Glue wants them for one request."""
    databases = dict.fromkeys(("database", name[0]) for name in names)
    tables = [("table", "/".join(name)) for name in names]
    return (
        stack.format_arn(service="glue", resource="catalog"),
        *(
            stack.format_arn(service="glue", resource=resource, resource_name=name)
            for resource, name in (*databases, *tables)
        ),
    )


@dataclass(frozen=True, slots=True)
class OutputTable:
    """The Iceberg table that outputs are published to, and its key table if rows have a key.

    Attributes:
        places: their locations, the table of rows first.
        arns: the resources in Glue that changes need: catalog, database and tables.
        keyed: True if rows have a key; then Spark writes the tables.
    """

    places: tuple[Place, ...]
    arns: tuple[str, ...]
    keyed: bool

    @classmethod
    def of(cls, stack: Stack, deployment: Deployment, storage: Storage) -> Self | None:
        """Return the table of a deployment; None without one."""
        address = deployment.run.table_address
        if address is None:
            return None
        keyed = bool(deployment.run.upsert_key)
        names = (address.name, address.keys.name) if keyed else (address.name,)
        return cls(storage.tables, glue_arns(stack, names), keyed)

    def may_ask(self, role: Role) -> None:
        """Allow reading the table's metadata."""
        for place in self.places:
            may_read(role, place)
        allow(role, ["glue:GetTable"], self.arns)

    def may_publish(self, role: Role) -> None:
        """Allow creating a missing table and committing to it, without deleting anything.

        If rows have a key, publishing only checks whether Spark has merged them.
        """
        if self.keyed:
            self.may_ask(role)
        else:
            self._may_commit(role, "metadata/*")

    def may_merge(self, role: Role) -> None:
        """Allow creating both tables if missing and merging into them, without deleting anything.

        Files that a MERGE replaces belong to the table until its snapshots expire, and files of a
        commit that lost the race are orphans: the table's maintenance deletes both.
        """
        self._may_commit(role, "metadata/*", "data/*")

    def _may_commit(self, role: Role, *written: str) -> None:
        for place in self.places:
            may_read(role, place)
            may_write(role, place, *written)
        allow(role, _COMMITTING, self.arns)


@dataclass(frozen=True, slots=True)
class ReaderTable:
    """The table that query engines read.

    Attributes:
        lists: where the lists of objects are stored that its partitions show.
        arns: the resources in Glue: catalog, database and table.
    """

    lists: Place
    arns: tuple[str, ...]

    @classmethod
    def of(cls, stack: Stack, deployment: Deployment, storage: Storage) -> Self | None:
        """Return the readers' table of a deployment; None without one."""
        run = deployment.run
        if run.reader_table is None:
            return None
        lists = replace(storage.destination, prefix=manifests_of(run.destination).prefix)
        return cls(lists, glue_arns(stack, [parse_table(run.reader_table).name]))

    def may_switch(self, role: Role) -> None:
        """Allow creating a missing table, and switching its partitions.

        For roles that may compact, which can read sources, outputs and state already.
        """
        may_read(role, self.lists)
        may_put(role, self.lists, "p-*/manifest")
        allow(role, _SWITCHING, self.arns)

    def may_ask(self, role: Role) -> None:
        """Allow checking which sources may still be read."""
        may_read(role, self.lists)
        allow(role, ["glue:BatchGetPartition"], self.arns)
