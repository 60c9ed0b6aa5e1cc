"""A list of objects that hold each record once, for engines without a catalog. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from compactor.errors import InvalidInput
from compactor.model import Format
from compactor.readers.states import Held

TEXT, DUCKDB, POLARS, SPARK = "txt", "duckdb", "polars", "spark"


def names_of(held: Held, *, exact: bool = True) -> list[str]:
    """Return the sorted URIs of the objects that hold each record once.

    Args:
        held: what was found in a partition.
        exact: include sources that no output holds.
    """
    objects = (*held.outputs, *(held.loose if exact else ()))
    return sorted(f"s3://{one.bucket}/{one.key}" for one in objects)


def as_text(uris: Sequence[str], _: Format) -> str:
    """Return one URI per line.

    Raises:
        InvalidInput: a key contains a line break.
    """
    for uri in uris:
        if uri.splitlines() != [uri]:
            raise InvalidInput(
                "format", TEXT, f"a format with quotes: {uri!r} has a line end in it"
            )
    return "".join(f"{uri}\n" for uri in uris)


def as_duckdb(uris: Sequence[str], format: Format) -> str:
    """Return DuckDB statements that count the records; the session variable is ``files``."""
    listed = ",\n  ".join(_sql(uri) for uri in uris)
    read = _call(_DUCKDB, format, DUCKDB)
    return (
        f"LOAD httpfs;\nSET VARIABLE files = [\n  {listed}\n];\n"
        f"SELECT count(*) FROM {read.format('getvariable(' + _sql('files') + ')')};\n"
    )


def as_polars(uris: Sequence[str], format: Format) -> str:
    """Return a Python module for Polars that defines a LazyFrame, ``frame``."""
    return f"import polars as pl\n\n{_python(uris)}\nframe = pl.{_call(_POLARS, format, POLARS)}\n"


def as_spark(uris: Sequence[str], format: Format) -> str:
    """Return a module for PySpark that defines a DataFrame, ``frame``; it uses ``spark``."""
    # hadoop-aws uses the scheme s3a; EMR accepts it as well.
    moved = [f"s3a://{uri.removeprefix('s3://')}" for uri in uris]
    return f"{_python(moved)}\nframe = spark.read.{_call(_SPARK, format, SPARK)}\n"


WRITERS: Mapping[str, Callable[[Sequence[str], Format], str]] = {
    TEXT: as_text,
    DUCKDB: as_duckdb,
    POLARS: as_polars,
    SPARK: as_spark,
}
_DUCKDB = {
    Format.JSON_LINES: "read_json({}, format='newline_delimited')",
    Format.CSV: "read_csv({})",
    Format.TSV: "read_csv({}, delim='\\t')",
    Format.TEXT: "read_csv({}, columns={{'line': 'VARCHAR'}}, delim='\\0', quote='', header=false)",
    Format.PARQUET: "read_parquet({})",
}
_POLARS = {
    Format.JSON_LINES: "scan_ndjson(files)",
    Format.CSV: "scan_csv(files)",
    Format.TSV: "scan_csv(files, separator='\\t')",
    Format.PARQUET: "scan_parquet(files)",
}
_SPARK = {
    Format.JSON_LINES: "json(files)",
    Format.CSV: "csv(files, header=True)",
    Format.TSV: "csv(files, header=True, sep='\\t')",
    Format.TEXT: "text(files)",
    Format.PARQUET: "parquet(*files)",
}


def _call(calls: Mapping[Format, str], format: Format, engine: str) -> str:
    if format not in calls:
        known = ", ".join(calls)
        raise InvalidInput("as", engine, f'"txt": the statement for {engine} reads {known}')
    return calls[format]


def _sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _python(uris: Iterable[str]) -> str:
    # JSON strings are valid Python literals.
    lines = "".join(f"    {json.dumps(uri)},\n" for uri in uris)
    return f"files = [\n{lines}]\n"
