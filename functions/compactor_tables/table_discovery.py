"""Which tables a run looks after: by name, by pattern in Glue, and by prefix where Delta is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from compactor.errors import InvalidInput
from compactor.ports import ObjectStore
from compactor.settings.policies import matches
from compactor.settings.tables import DELTA, TableAddress, parse_table
from compactor.settings.uris import S3Uri
from compactor_tables.request import MaintenanceRequest

_LOG = "_delta_log/"
# So many levels below a prefix a table is found; and in so many prefixes all in all it is looked
# for. Tables that lie deeper, or beside as much else, need a longer prefix.
_DEEPEST = 6
_MOST_PREFIXES = 20_000
_CONCURRENT = 16
# Hidden ones belong to another owner: files of a table, or of a job.
_HIDDEN = ("_", ".")


class IcebergTables(Protocol):
    """The tables of Iceberg in a catalog of databases.

    Both raise InvalidInput where something may not be asked or is not there, and
    TransientStoreError.
    """

    def databases(self) -> Iterator[str]:
        """Names of all databases."""
        ...

    def tables(self, database: str) -> Iterator[str]:
        """Names of the tables of Iceberg in one."""
        ...


@dataclass(frozen=True, slots=True)
class FoundTables:
    """Tables of a run.

    Attributes:
        tables: each once: first those that are named, then in the order of their addresses.
        unnamed: tables whose names no address can have.
    """

    tables: tuple[TableAddress, ...]
    unnamed: tuple[str, ...] = ()


def find_tables(
    request: MaintenanceRequest, store: ObjectStore, catalog: IcebergTables
) -> FoundTables:
    """Find the tables of a run.

    Args:
        request: says which.
        store: in which Delta tables are looked for.
        catalog: Glue's; it is asked only where the request has patterns.

    Raises:
        InvalidInput: a database or bucket is not there or may not be listed, too many prefixes
            are to be looked through, or more tables are found than the request allows.
        TransientStoreError: something did not answer.
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
    """Databases and tables that match one of the patterns, each once."""
    wanted = list(patterns)
    for database in _databases(wanted, catalog):
        for table in catalog.tables(database):
            name = f"glue:{database}.{table}"
            if any(matches(pattern, name) for pattern in wanted):
                yield database, table


def _databases(patterns: list[str], catalog: IcebergTables) -> list[str]:
    """Databases whose tables may match; all are listed only where a pattern leaves it open."""
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
    """The Delta tables at and below a prefix, level by level; none is looked into.

    Args:
        where: to look.
        store: to look in.

    Raises:
        InvalidInput: there is too much to look through.
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
    """Names of what is one level below, each with the slash after it."""
    return [
        one.removeprefix(where.prefix)
        for page in store.list_level(where.bucket, where.prefix)
        for one in page.prefixes
    ]
