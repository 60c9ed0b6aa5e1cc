"""How columns that do not fit a table are handled, for both table formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from compactor.errors import InvalidInput
from compactor.sinks.table_catalog import TableFile
from compactor.table_formats.footer_statistics import nulls_in


class Misfit(NamedTuple):
    """A column that does not fit; ``table`` is empty if the table has no such column."""

    column: str
    output: str
    table: str


def require_fit(found: Iterable[Misfit], where: str, *, evolve: bool) -> None:
    """Reject an output whose columns do not fit.

    Args:
        found: the misfits of one output.
        where: that output, for messages.
        evolve: columns that the table does not have may be added.

    Raises:
        InvalidInput: names the first column and both types.
    """
    for one in found:
        if one.table:
            accepted = (
                f"outputs that fit the table; column {one.column} is {one.output} in {where}, and"
                f" {one.table} in the table"
            )
            raise InvalidInput("table", one.column, accepted)
        if not evolve:
            accepted = (
                f'"add_columns", or outputs without column {one.column} ({one.output}), which'
                f" {where} has and the table has not"
            )
            raise InvalidInput("schema_evolution", "refuse", accepted)


def require_values(columns: Iterable[str], footer: Any, where: str) -> None:
    """Reject an output that may have rows without a value that the table requires.

    Args:
        columns: required top-level columns, each of a type that is not nested.
        footer: of the output, a ``pyarrow.parquet.FileMetaData``.
        where: the output, for messages.

    Raises:
        InvalidInput: names the first such column.
    """
    for one in columns:
        nulls = nulls_in(footer, one)
        if nulls is None:
            fault = "without a count of its nulls"
        elif nulls:
            fault = f"without a value in {nulls:,} of {footer.num_rows:,} rows"
        else:
            continue
        require_fit([Misfit(one, fault, "required")], where, evolve=False)


def require_no_past(columns: Iterable[str], past: Mapping[str, str], where: str) -> None:
    """Reject columns that a table once had and no longer has.

    Args:
        columns: of one output.
        past: what became of each past column of the table, by its name in lower case.
        where: that output, for messages.

    Raises:
        InvalidInput: names the first column and what became of it.
    """
    for one in columns:
        became = past.get(one.lower())
        if became is not None:
            accepted = (
                f"outputs without column {one}, which {where} has and the table {became}; compact"
                " sources with it into another s3_destination_uri"
            )
            raise InvalidInput("table", one, accepted)


@contextmanager
def noted(found: dict[TableFile, str], file: TableFile) -> Iterator[None]:
    """Record why a file does not fit instead of raising.

    Any library error about one file is caught, so that it does not keep the others out. The body
    must not access the store.

    Args:
        found: receives the reason.
        file: the file being checked.
    """
    try:
        yield
    except InvalidInput as error:
        found[file] = str(error)
    except Exception as error:
        found[file] = f"{file.uri}: {type(error).__name__}: {' '.join(str(error).split())}"
