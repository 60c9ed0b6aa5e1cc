"""The process of one engine: takes queries as lines of JSON, answers each with its rows.

It is run by the Python that has the engine, and takes of this project no more than the modules
beside it: ``statements``, and ``host_here``, which is about engines that this project needs itself.

    host.py ENGINE THREADS      0 threads: as many as the engine takes by itself

An order names a query, and URLs that end in ``/*.<extension>``, one for each day. Of CloudTrail
(``trails``) some of these may hold documents, and the others their records, one a line.
"""

# ruff: noqa: S608 - every part of a statement is this bench's own
from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from compactor_dev.query_bench.host_here import Arrow, Spark
from compactor_dev.query_bench.statements import (
    COLUMNS,
    REGION,
    TRAIL,
    apart,
    as_events,
    statement,
)


class DuckDb:
    """DuckDB with its extension httpfs, of which a wheel has the file."""

    def __init__(self, endpoint: str, threads: int) -> None:
        duckdb: Any = import_module("duckdb")
        extension: Any = import_module("duckdb_extension_httpfs")
        self._connect = duckdb.connect
        self.version = str(duckdb.__version__)
        place = Path(extension.__file__).parent / "extensions" / f"v{self.version}"
        file = place / "httpfs.duckdb_extension"
        self._set_up = [
            f"LOAD '{file}'",
            f"SET s3_endpoint='{endpoint.removeprefix('http://')}'",
            "SET s3_use_ssl=false",
            "SET s3_url_style='path'",
            f"SET s3_region='{REGION}'",
            "SET s3_access_key_id='embedded'",
            "SET s3_secret_access_key='embedded'",
        ]
        if threads:
            self._set_up.append(f"SET threads={threads}")

    def rows(self, query: str, order: dict[str, Any]) -> list[list[Any]]:
        """A connection of its own: DuckDB keeps what it has read."""
        places = ", ".join(f"'s3://{one}'" for one in order["places"])
        size = "http.bytes"
        if order["trails"]:
            table, size = as_events(self._trails(order)), "size"
        elif order["parquet"]:
            table = f"read_parquet([{places}])"
        else:
            kinds = (
                "{event_id: 'VARCHAR', level: 'VARCHAR', service: 'VARCHAR',"
                " http: 'STRUCT(bytes BIGINT)', message: 'VARCHAR'}"
            )
            table = f"read_json([{places}], format='newline_delimited', columns={kinds})"
        with self._connect() as connection:
            for one in self._set_up:
                connection.execute(one)
            found = connection.execute(statement(query, table, order["needle"], size))
            return [list(row) for row in found.fetchall()]

    def _trails(self, order: dict[str, Any]) -> list[str]:
        documents, records = (", ".join(f"'s3://{one}'" for one in some) for some in apart(order))
        kinds = ", ".join(f"{name} VARCHAR" for name in TRAIL)
        columns = ", ".join(f"{name}: 'VARCHAR'" for name in TRAIL)
        found = []
        if documents:
            found.append(
                "SELECT unnest(Records, recursive := true) FROM read_json("
                f"[{documents}], format='unstructured', columns={{Records: 'STRUCT({kinds})[]'}})"
            )
        if records:
            read = f"read_json([{records}], format='newline_delimited', columns={{{columns}}})"
            found.append(f"SELECT {', '.join(TRAIL)} FROM {read}")
        return found


class ChDb:
    """ClickHouse in this process."""

    def __init__(self, endpoint: str, threads: int) -> None:
        chdb: Any = import_module("chdb")
        self._query = chdb.query
        self.version = str(chdb.__version__)
        self._endpoint = endpoint
        more = f", max_threads={threads}, max_download_threads={threads}" if threads else ""
        self._settings = (
            " SETTINGS input_format_skip_unknown_fields=1,"
            " input_format_json_ignore_unknown_keys_in_named_tuple=1,"
            f" s3_max_get_rps=0{more}"
        )

    def rows(self, query: str, order: dict[str, Any]) -> list[list[Any]]:
        """A session of its own for each query."""
        if order["trails"]:
            text = statement(query, as_events(self._trails(order)), order["needle"], "size")
            return self._asked(text)
        kind = "Parquet" if order["parquet"] else "JSONEachRow"
        columns = (
            "event_id String, level String, service String, http Tuple(bytes Int64), message String"
        )
        tables = " UNION ALL ".join(
            f"SELECT * FROM s3('{self._endpoint}/{one}', 'embedded', 'embedded', '{kind}',"
            f" '{columns}')"
            for one in order["places"]
        )
        text = statement(query, f"({tables})", order["needle"], "tupleElement(http, 'bytes')")
        return self._asked(text)

    def _asked(self, text: str) -> list[list[Any]]:
        answer = str(self._query(text + self._settings, "JSONCompactEachRow"))
        return [[_number(one) for one in json.loads(line)] for line in answer.splitlines()]

    def _trails(self, order: dict[str, Any]) -> list[str]:
        documents, records = apart(order)
        kinds = ", ".join(f"{name} Nullable(String)" for name in TRAIL)
        fields = ", ".join(f"tupleElement(one, '{name}') AS {name}" for name in TRAIL)
        within = f"'Records', 'Array(Tuple({kinds}))'"
        found = [
            f"SELECT {fields} FROM (SELECT arrayJoin(JSONExtract(json, {within})) AS one FROM"
            f" s3('{self._endpoint}/{one}', 'embedded', 'embedded', 'JSONAsString', 'json String'))"
            for one in documents
        ]
        found += [
            f"SELECT * FROM s3('{self._endpoint}/{one}', 'embedded', 'embedded', 'JSONEachRow',"
            f" '{kinds}')"
            for one in records
        ]
        return found


class Polars:
    """Polars, lazily and by its streaming engine."""

    def __init__(self, endpoint: str, threads: int) -> None:
        if threads:
            # Read when it is imported.
            os.environ["POLARS_MAX_THREADS"] = str(threads)
            os.environ["POLARS_CONCURRENCY_BUDGET"] = str(threads)
        polars: Any = import_module("polars")
        self._polars = polars
        self.version = str(polars.__version__)
        self._options = {
            "aws_endpoint_url": endpoint,
            "aws_access_key_id": "embedded",
            "aws_secret_access_key": "embedded",
            "aws_region": REGION,
            "aws_allow_http": "true",
        }

    def rows(self, query: str, order: dict[str, Any]) -> list[list[Any]]:
        """A lazy frame of its own for each query."""
        polars = self._polars
        places = [f"s3://{one}" for one in order["places"]]
        size = polars.col("http").struct.field("bytes")
        if order["trails"]:
            frame, size = self._trails(order), polars.col("size")
        elif order["parquet"]:
            frame = polars.scan_parquet(places, storage_options=self._options)
        else:
            text = polars.String
            kinds = dict.fromkeys(COLUMNS, text) | {"http": polars.Struct({"bytes": polars.Int64})}
            frame = polars.scan_ndjson(places, storage_options=self._options, schema=kinds)
        asked = {
            "count": lambda: frame.select(polars.len()),
            "day": lambda: frame.select(polars.len(), size.sum()),
            "group": lambda: (
                frame.group_by("service")
                .agg(polars.len(), (polars.col("level") == "ERROR").sum(), size.sum().alias("sum"))
                .sort("service")
            ),
            "needle": lambda: frame.filter(polars.col("event_id") == order["needle"]).select(
                "event_id", "service", "level"
            ),
        }
        return [list(row) for row in asked[query]().collect(engine="streaming").rows()]

    def _trails(self, order: dict[str, Any]) -> Any:
        polars, given = self._polars, {"storage_options": self._options}
        documents, records = ([f"s3://{one}" for one in some] for some in apart(order))
        kinds, frames = dict.fromkeys(TRAIL, polars.String), []
        if documents:
            schema = {"Records": polars.List(polars.Struct(kinds))}
            frame = polars.scan_ndjson(documents, schema=schema, **given)
            frames.append(frame.explode("Records").unnest("Records"))
        if records:
            frames.append(polars.scan_ndjson(records, schema=kinds, **given))
        failed = polars.col("errorCode").is_not_null()
        return polars.concat(frames).select(
            polars.col("eventID").alias("event_id"),
            polars.col("eventSource").alias("service"),
            polars.when(failed)
            .then(polars.lit("ERROR"))
            .otherwise(polars.lit("none"))
            .alias("level"),
            polars.col("eventName").str.len_bytes().cast(polars.Int64).alias("size"),
        )


def _number(value: Any) -> Any:
    """ClickHouse writes its larger numbers as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


ENGINES: dict[str, Any] = {
    "duckdb": DuckDb,
    "chdb": ChDb,
    "polars": Polars,
    "arrow": Arrow,
    "spark": Spark,
}


def main() -> None:
    """Answer orders until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    # What an engine prints of itself is no answer.
    os.dup2(2, 1)
    engine = ENGINES[sys.argv[1]](os.environ["QUERY_ENDPOINT"], int(sys.argv[2]))
    print(json.dumps({"version": engine.version}), file=answers, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        started = time.perf_counter()
        try:
            told: dict[str, Any] = {"rows": engine.rows(order["query"], order)}
        except Exception as error:
            told = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        told["seconds"] = time.perf_counter() - started
        print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main()
