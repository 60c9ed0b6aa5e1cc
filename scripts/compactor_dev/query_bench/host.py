"""The process of one engine: takes queries as lines of JSON, answers each with its rows.

It is run by the Python that has the engine, as a script, and imports nothing of this project:

    python host.py ENGINE THREADS      0 threads: as many as the engine takes by itself

An order names a query, and URLs that end in ``/*.<extension>``, one for each day.
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

COLUMNS = ("event_id", "level", "service", "http", "message")
_REGION = "us-east-1"


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
            f"SET s3_region='{_REGION}'",
            "SET s3_access_key_id='embedded'",
            "SET s3_secret_access_key='embedded'",
        ]
        if threads:
            self._set_up.append(f"SET threads={threads}")

    def rows(self, query: str, order: dict[str, Any]) -> list[list[Any]]:
        """A connection of its own: DuckDB keeps what it has read."""
        places = ", ".join(f"'s3://{one}'" for one in order["places"])
        if order["parquet"]:
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
            found = connection.execute(statement(query, table, order["needle"], "http.bytes"))
            return [list(row) for row in found.fetchall()]


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
        answer = str(self._query(text + self._settings, "JSONCompactEachRow"))
        return [[_number(one) for one in json.loads(line)] for line in answer.splitlines()]


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
            "aws_region": _REGION,
            "aws_allow_http": "true",
        }

    def rows(self, query: str, order: dict[str, Any]) -> list[list[Any]]:
        """A lazy frame of its own for each query."""
        polars = self._polars
        places = [f"s3://{one}" for one in order["places"]]
        if order["parquet"]:
            frame = polars.scan_parquet(places, storage_options=self._options)
        else:
            text = polars.String
            kinds = dict.fromkeys(COLUMNS, text) | {"http": polars.Struct({"bytes": polars.Int64})}
            frame = polars.scan_ndjson(places, storage_options=self._options, schema=kinds)
        size = polars.col("http").struct.field("bytes")
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


class Arrow:
    """Arrow's datasets and its own engine."""

    def __init__(self, endpoint: str, threads: int) -> None:
        arrow: Any = import_module("pyarrow")
        for part in ("compute", "dataset", "fs", "json"):
            import_module(f"pyarrow.{part}")
        if threads:
            arrow.set_cpu_count(threads)
            arrow.set_io_thread_count(threads)
        self._arrow = arrow
        self.version = str(arrow.__version__)
        self._place = {
            "endpoint_override": endpoint,
            "access_key": "embedded",
            "secret_key": "embedded",
            "region": _REGION,
            "allow_bucket_creation": False,
        }

    def rows(self, query: str, order: dict[str, Any]) -> list[list[Any]]:
        """A file system of its own for each query."""
        table = self._dataset(order)
        compute, dataset = self._arrow.compute, self._arrow.dataset
        size = compute.struct_field(dataset.field("http"), "bytes")
        if query == "count":
            return [[table.count_rows()]]
        if query == "needle":
            chosen = dataset.field("event_id") == order["needle"]
            found = table.to_table(columns=["event_id", "service", "level"], filter=chosen)
            return [list(row.values()) for row in found.to_pylist()]
        columns = {"service": dataset.field("service"), "level": dataset.field("level")}
        found = table.to_table(columns={**columns, "bytes": size})
        if query == "day":
            return [[found.num_rows, compute.sum(found["bytes"]).as_py()]]
        wrong = compute.cast(compute.equal(found["level"], "ERROR"), "int64")
        found = found.append_column("wrong", wrong)
        wanted = [([], "count_all"), ("wrong", "sum"), ("bytes", "sum")]
        grouped = found.group_by("service").aggregate(wanted).sort_by("service")
        names = ("service", "count_all", "wrong_sum", "bytes_sum")
        return [[row[name] for name in names] for row in grouped.to_pylist()]

    def _dataset(self, order: dict[str, Any]) -> Any:
        arrow, s3 = self._arrow, self._arrow.fs.S3FileSystem(scheme="http", **self._place)
        found: list[str] = []
        for one in order["places"]:
            directory, _, pattern = one.rpartition("/")
            end = pattern.removeprefix("*")
            listed = s3.get_file_info(arrow.fs.FileSelector(directory))
            found += [file.path for file in listed if file.path.endswith(end)]
        if order["parquet"]:
            return arrow.dataset.dataset(found, format="parquet", filesystem=s3)
        text = arrow.string()
        kinds = dict.fromkeys(COLUMNS, text) | {"http": arrow.struct({"bytes": arrow.int64()})}
        schema = arrow.schema(kinds)
        options = arrow.json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore"
        )
        kind = arrow.dataset.JsonFileFormat(parse_options=options)
        return arrow.dataset.dataset(found, schema=schema, format=kind, filesystem=s3)


class Spark:
    """Spark in this process, with its own readers over S3A."""

    def __init__(self, endpoint: str, threads: int) -> None:
        sql: Any = import_module("pyspark.sql")
        pyspark: Any = import_module("pyspark")
        self.version = str(pyspark.__version__)
        builder = sql.SparkSession.Builder().master(f"local[{threads or '*'}]")
        s3a = "spark.hadoop.fs.s3a"
        for name, value in {
            "spark.jars": os.environ["QUERY_JARS"],
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "2g",
            "spark.log.level": "ERROR",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # The answers have a few rows.
            "spark.sql.shuffle.partitions": "2",
            f"{s3a}.endpoint": endpoint,
            f"{s3a}.endpoint.region": _REGION,
            f"{s3a}.path.style.access": "true",
            f"{s3a}.connection.ssl.enabled": "false",
            f"{s3a}.access.key": "embedded",
            f"{s3a}.secret.key": "embedded",
            f"{s3a}.aws.credentials.provider": (
                "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
            ),
        }.items():
            builder = builder.config(name, value)
        self._session = builder.getOrCreate()

    def rows(self, query: str, order: dict[str, Any]) -> list[list[Any]]:
        """A session of its own for each query."""
        own = self._session.newSession()
        # Directories: a glob's objects would be asked for one by one.
        places = [f"s3a://{one.rpartition('/')[0]}/" for one in order["places"]]
        kinds = (
            "event_id string, level string, service string, http struct<bytes: bigint>,"
            " message string"
        )
        reader = own.read.schema(kinds)
        frame = reader.parquet(*places) if order["parquet"] else reader.json(places)
        frame.createOrReplaceTempView("events")
        found = own.sql(statement(query, "events", order["needle"], "http.bytes"))
        return [list(row) for row in found.collect()]


def statement(query: str, table: str, needle: str, size: str) -> str:
    """A query as SQL that all of them know.

    Args:
        query: its name.
        table: what stands behind FROM.
        needle: the event id that is looked for.
        size: the expression of the bytes.
    """
    return {
        "count": f"SELECT count(*) FROM {table}",
        "day": f"SELECT count(*), CAST(sum({size}) AS BIGINT) FROM {table}",
        "group": (
            "SELECT service, count(*), CAST(sum(CASE WHEN level = 'ERROR' THEN 1 ELSE 0 END)"
            f" AS BIGINT), CAST(sum({size}) AS BIGINT) FROM {table} GROUP BY 1 ORDER BY 1"
        ),
        "needle": f"SELECT event_id, service, level FROM {table} WHERE event_id = '{needle}'",
    }[query]


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
