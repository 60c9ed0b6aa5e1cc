"""Finds the tables of a run: by address, by pattern in Glue, and Delta tables by prefix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from compactor.errors import InvalidInput
from compactor.ports import ObjectStore
from compactor.settings.tables import DELTA, TableAddress, parse_table
from compactor.settings.uris import S3Uri
from compactor_tables.policies import matches
from compactor_tables.request import MaintenanceRequest

_LOG = "_delta_log/"
# Levels searched below a prefix, and prefixes searched in all. Tables that lie deeper, or among
# more prefixes, need a longer prefix in the request.
_DEEPEST = 6
_MOST_PREFIXES = 20_000
_CONCURRENT = 16
# Prefixes that begin so hold files of a table or of a job, not tables.
_HIDDEN = ("_", ".")


class IcebergTables(Protocol):
    """The Iceberg tables of a catalog of databases.

    Both methods raise InvalidInput if access is denied or the database is missing, and
    TransientStoreError if the catalog does not answer.
    """

    def databases(self) -> Iterator[str]:
        """Return the names of all databases."""
        ...

    def tables(self, database: str) -> Iterator[str]:
        """Return the names of a database's Iceberg tables."""
        ...


@dataclass(frozen=True, slots=True)
class FoundTables:
    """The tables of a run.

    Attributes:
        tables: without duplicates; first those that the request names, then the others by address.
        unnamed: tables whose names do not fit into an address.
    """

    tables: tuple[TableAddress, ...]
    unnamed: tuple[str, ...] = ()


def find_tables(
    request: MaintenanceRequest, store: ObjectStore, catalog: IcebergTables
) -> FoundTables:
    """Find the tables of a run.

    Args:
        request: addresses, patterns and prefixes of the tables.
        store: searched for Delta tables.
        catalog: Glue's; queried only if the request has patterns.

    Raises:
        InvalidInput: a database or bucket is missing or may not be listed, there are too many
            prefixes to search, or more tables are found than the request allows.
        TransientStoreError: the catalog or the store did not answer.
    """
    named = dict.fromkeys(parse_table(one) for one in request.tables)
    found: set[TableAddress] = set()
    unnamed: list[str] = []
    for database, table in _in_glue(request.glue_tables, catalog):
        try:
            found.add(parse_table(f"glue:{database}.{table}"))
        except ValueError:
            unnamed.append(f"{database}.{table}")
    for prefix in request.delta_prefixes:
        where = S3Uri.parse("delta_prefixes", prefix)
        found |= {TableAddress(DELTA, one.uri) for one in delta_tables(where, store)}
    rest = sorted(found - named.keys(), key=lambda one: one.text)
    if len(named) + len(rest) > request.max_tables:
        accepted = f"at least {len(named) + len(rest):,}, as many as there are"
        raise InvalidInput("max_tables", request.max_tables, accepted)
    return FoundTables((*named, *rest), tuple(sorted(unnamed)))


def _in_glue(patterns: Iterable[str], catalog: IcebergTables) -> Iterator[tuple[str, str]]:
    """Return each database and table that matches a pattern, once."""
    wanted = list(patterns)
    for database in _databases(wanted, catalog):
        for table in catalog.tables(database):
            name = f"glue:{database}.{table}"
            if any(matches(pattern, name) for pattern in wanted):
                yield database, table


def _databases(patterns: list[str], catalog: IcebergTables) -> list[str]:
    """Return the databases whose tables may match; lists them only if a pattern needs it."""
    parts = [pattern.removeprefix("glue:").partition(".") for pattern in patterns]
    wanted = {database if dot else "*" for database, dot, _ in parts}
    named = {one for one in wanted if "*" not in one}
    if named != wanted:
        globs = wanted - named
        named |= {
            one
            for one in catalog.databases()
            if any(matches(f"glue:{glob}.x", f"glue:{one}.x") for glob in globs)
        }
    return sorted(named)


def delta_tables(where: S3Uri, store: ObjectStore) -> list[S3Uri]:
    """Return the Delta tables at and below a prefix. Tables are not searched for nested ones.

    Args:
        where: the prefix.
        store: where it lies.

    Raises:
        InvalidInput: there are too many prefixes to search.
    """
    found: list[S3Uri] = []
    level, looked = [where], 0
    for _ in range(_DEEPEST + 1):
        looked += len(level)
        if looked > _MOST_PREFIXES:
            accepted = f"a longer prefix: below it are more than {_MOST_PREFIXES:,} others"
            raise InvalidInput("delta_prefixes", where.uri, accepted)
        following: list[S3Uri] = []
        with ThreadPoolExecutor(_CONCURRENT) as pool:
            for one, names in zip(
                level, pool.map(lambda at: _below(at, store), level), strict=True
            ):
                if _LOG in names and one.prefix:
                    found.append(one)
                else:
                    shown = (name for name in names if not name.startswith(_HIDDEN))
                    following += (S3Uri(one.bucket, one.prefix + name) for name in shown)
        level = following
    return found


def _below(where: S3Uri, store: ObjectStore) -> list[str]:
    """Return the names of the prefixes one level below, each with its final slash."""
    return [
        one.removeprefix(where.prefix)
        for page in store.list_level(where.bucket, where.prefix)
        for one in page.prefixes
    ]
