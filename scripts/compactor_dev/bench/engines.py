"""The process of a query engine: ``engines.py ENGINE THREADS ORDER`` (0 threads: its default).

Run by the Python that has the engine installed; imports nothing of this project. The order has
one URL per day that ends in ``/*.<extension>``, and the file for the answer.
"""

# ruff: noqa: S608 - statements are built from constants of this benchmark
from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

REGION = "us-east-1"
QUERY = (
    "SELECT service, count(*) AS n, CAST(sum(CASE WHEN level = 'ERROR' THEN 1 ELSE 0 END)"
    " AS BIGINT) AS errors, CAST(sum(size) AS BIGINT) AS total FROM events GROUP BY service"
    " ORDER BY service"
)


class DuckDb:
    """DuckDB with its extension httpfs, loaded from a wheel."""

    def __init__(self, endpoint: str, threads: int) -> None:
        duckdb: Any = import_module("duckdb")
        wheel = Path(str(import_module("duckdb_extension_httpfs").__file__)).parent
        extension = wheel / "extensions" / f"v{duckdb.__version__}" / "httpfs.duckdb_extension"
        self._connection = duckdb.connect()
        for one in (
            f"LOAD '{extension}'",
            f"SET s3_endpoint='{endpoint.removeprefix('http://')}'",
            "SET s3_use_ssl=false",
            "SET s3_url_style='path'",
            f"SET s3_region='{REGION}'",
            "SET s3_access_key_id='embedded'",
            "SET s3_secret_access_key='embedded'",
            *([f"SET threads={threads}"] if threads else []),
        ):
            self._connection.execute(one)

    def rows(self, order: dict[str, Any]) -> list[list[Any]]:
        """Return the rows of the query."""
        places = ", ".join(f"'s3://{one}'" for one in order["places"])
        kinds = "{level: 'VARCHAR', service: 'VARCHAR', http: 'STRUCT(bytes BIGINT)'}"
        read = f"read_json([{places}], format='newline_delimited', columns={kinds})"
        if order["parquet"]:
            read = f"read_parquet([{places}])"
        events = f"WITH events AS (SELECT *, http.bytes AS size FROM {read})"
        found = self._connection.execute(f"{events} {QUERY}").fetchall()
        return [list(row) for row in found]


class ChDb:
    """ClickHouse in this process."""

    def __init__(self, endpoint: str, threads: int) -> None:
        self._query = import_module("chdb").query
        self._endpoint = endpoint
        more = f", max_threads={threads}, max_download_threads={threads}" if threads else ""
        self._settings = (
            " SETTINGS input_format_skip_unknown_fields=1,"
            f" input_format_json_ignore_unknown_keys_in_named_tuple=1, s3_max_get_rps=0{more}"
        )

    def rows(self, order: dict[str, Any]) -> list[list[Any]]:
        """Return the rows of the query."""
        kind = "Parquet" if order["parquet"] else "JSONEachRow"
        columns = "level String, service String, http Tuple(bytes Int64)"
        tables = " UNION ALL ".join(
            f"SELECT *, tupleElement(http, 'bytes') AS size FROM s3('{self._endpoint}/{one}',"
            f" 'embedded', 'embedded', '{kind}', '{columns}')"
            for one in order["places"]
        )
        text = f"WITH events AS ({tables}) {QUERY}{self._settings}"
        answer = str(self._query(text, "JSONCompactEachRow"))
        return [[_number(one) for one in json.loads(line)] for line in answer.splitlines()]


def _number(value: Any) -> Any:
    """Convert a value; ClickHouse writes large numbers as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


class Polars:
    """Polars, lazily and by its streaming engine."""

    def __init__(self, endpoint: str, threads: int) -> None:
        if threads:
            # Polars reads them on import.
            os.environ["POLARS_MAX_THREADS"] = os.environ["POLARS_CONCURRENCY_BUDGET"] = str(
                threads
            )
        self._polars: Any = import_module("polars")
        self._options = {
            "aws_endpoint_url": endpoint,
            "aws_access_key_id": "embedded",
            "aws_secret_access_key": "embedded",
            "aws_region": REGION,
            "aws_allow_http": "true",
        }

    def rows(self, order: dict[str, Any]) -> list[list[Any]]:
        """Return the rows of the query."""
        polars = self._polars
        places = [f"s3://{one}" for one in order["places"]]
        if order["parquet"]:
            frame = polars.scan_parquet(places, storage_options=self._options)
        else:
            kinds = dict.fromkeys(("level", "service"), polars.String)
            http = polars.Struct({"bytes": polars.Int64})
            frame = polars.scan_ndjson(
                places, schema={**kinds, "http": http}, storage_options=self._options
            )
        size = polars.col("http").struct.field("bytes").alias("size")
        events = frame.select("level", "service", size)
        found = polars.SQLContext(events=events).execute(QUERY)
        return [list(row) for row in found.collect(engine="streaming").rows()]


ENGINES: dict[str, Any] = {"duckdb": DuckDb, "chdb": ChDb, "polars": Polars}


def main() -> None:
    """Answer one order; the measured time excludes starting the engine."""
    name, threads, text = sys.argv[1:]
    order = json.loads(text)
    engine = ENGINES[name](order["endpoint_url"], int(threads))
    started = time.perf_counter()
    rows = engine.rows(order)
    result = {"rows": rows, "seconds": time.perf_counter() - started}
    Path(order["answer"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
