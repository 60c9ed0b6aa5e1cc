"""Arrow and Spark, which this project needs itself, as engines of :mod:`.host`."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from compactor_dev.query_bench.statements import (
    COLUMNS,
    REGION,
    TRAIL,
    apart,
    as_events,
    statement,
)

_LONGEST_LINE = 16 << 20


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
            "region": REGION,
            "allow_bucket_creation": False,
        }

    def rows(self, query: str, order: dict[str, Any]) -> list[list[Any]]:
        """A file system of its own for each query."""
        compute, dataset = self._arrow.compute, self._arrow.dataset
        if order["trails"]:
            table, size = dataset.dataset(self._trails(order)), dataset.field("size")
        else:
            table = self._dataset(order)
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

    def _trails(self, order: dict[str, Any]) -> Any:
        arrow, compute = self._arrow, self._arrow.compute
        documents, records = apart(order)
        text, tables = arrow.string(), []
        kinds = dict.fromkeys(TRAIL, text)
        if documents:
            read = self._one_by_one(documents, {"Records": arrow.list_(arrow.struct(kinds))})
            calls = compute.list_flatten(read["Records"])
            columns = [compute.struct_field(calls, name) for name in TRAIL]
            tables.append(arrow.table(columns, names=TRAIL))
        if records:
            tables.append(self._one_by_one(records, kinds))
        found = arrow.concat_tables(tables)
        level = compute.if_else(compute.is_valid(found["errorCode"]), "ERROR", "none")
        size = compute.cast(compute.binary_length(found["eventName"]), "int64")
        columns = [found["eventID"], found["eventSource"], level, size]
        return arrow.table(columns, names=["event_id", "service", "level", "size"])

    def _dataset(self, order: dict[str, Any]) -> Any:
        arrow = self._arrow
        text = arrow.string()
        kinds = dict.fromkeys(COLUMNS, text) | {"http": arrow.struct({"bytes": arrow.int64()})}
        return self._read(order["places"], kinds, parquet=order["parquet"])

    def _one_by_one(self, places: list[str], kinds: dict[str, Any]) -> Any:
        """As Arrow reads JSON; its datasets stumble over fields that nobody asked for."""
        arrow, schema = self._arrow, self._arrow.schema(kinds)
        s3, found = self._found(places)
        tables = []
        for path in found:
            with s3.open_input_stream(path) as stream:
                tables.append(arrow.json.read_json(stream, self._blocks(), self._fields(schema)))
        return arrow.concat_tables(tables)

    def _found(self, places: list[str]) -> tuple[Any, list[str]]:
        """A connection, and the objects of these places."""
        arrow, s3 = self._arrow, self._arrow.fs.S3FileSystem(scheme="http", **self._place)
        found: list[str] = []
        for one in places:
            directory, _, pattern = one.rpartition("/")
            end = pattern.removeprefix("*")
            listed = s3.get_file_info(arrow.fs.FileSelector(directory))
            found += [file.path for file in listed if file.path.endswith(end)]
        return s3, found

    def _fields(self, schema: Any) -> Any:
        given = {"explicit_schema": schema, "unexpected_field_behavior": "ignore"}
        return self._arrow.json.ParseOptions(**given)

    def _blocks(self) -> Any:
        # A document is a line, and a line fits a block.
        return self._arrow.json.ReadOptions(block_size=_LONGEST_LINE)

    def _read(self, places: list[str], kinds: dict[str, Any], *, parquet: bool = False) -> Any:
        arrow = self._arrow
        s3, found = self._found(places)
        if parquet:
            return arrow.dataset.dataset(found, format="parquet", filesystem=s3)
        schema = arrow.schema(kinds)
        given = {"parse_options": self._fields(schema), "read_options": self._blocks()}
        kind = arrow.dataset.JsonFileFormat(**given)
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
            f"{s3a}.endpoint.region": REGION,
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
        if order["trails"]:
            trails = self._trails(own, order)
            trails.createOrReplaceTempView("trails")
            asked = statement(query, as_events(["SELECT * FROM trails"]), order["needle"], "size")
            return [list(row) for row in own.sql(asked).collect()]
        places = _directories(order["places"])
        kinds = (
            "event_id string, level string, service string, http struct<bytes: bigint>,"
            " message string"
        )
        reader = own.read.schema(kinds)
        frame = reader.parquet(*places) if order["parquet"] else reader.json(places)
        frame.createOrReplaceTempView("events")
        found = own.sql(statement(query, "events", order["needle"], "http.bytes"))
        return [list(row) for row in found.collect()]

    def _trails(self, session: Any, order: dict[str, Any]) -> Any:
        documents, records = map(_directories, apart(order))
        kinds, frames = ", ".join(f"{name}: string" for name in TRAIL), []
        if documents:
            read = session.read.schema(f"Records array<struct<{kinds}>>").json(documents)
            frames.append(read.selectExpr("inline(Records)"))
        if records:
            frames.append(session.read.schema(kinds.replace(":", "")).json(records))
        return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])


def _directories(places: list[str]) -> list[str]:
    """What Spark lists: a glob's objects would be asked for one by one."""
    return [f"s3a://{one.rpartition('/')[0]}/" for one in places]
