"""Lets Spark count the records of some files, and add up their checksums, partition by partition.

Python workers take files apart into records, as no reader of Spark's does: JSON values that stand
beside each other or in documents, and lines whose headers are no records. The rest is Spark's SQL.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import zstandard
from pyspark.sql import DataFrame, SparkSession

QUESTION = (
    "SELECT partition, count(*) AS records,"
    " CAST(sum(CAST(xxhash64(record) AS DECIMAL(38, 0))) AS STRING) AS checksum"
    " FROM records GROUP BY partition ORDER BY partition"
)
_GZIP = 31  # zlib's wbits of a gzip container
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BLANKS = re.compile(r"[ \t\r\n]*")
_DOCUMENT = "Records"
# A task takes some files, so that many small ones are no tasks of their own.
_TASKS_PER_CORE = 2

#: File, how it is read (``json``, ``lines`` or ``parquet``), partition.
Place = tuple[str, str, str]


class Records:
    """A Spark of this process, warmed up.

    Attributes:
        version: its own.
        question: in its words.
    """

    question = QUESTION

    def __init__(self) -> None:
        self._session = SparkSession.Builder().getOrCreate()
        self.version = self._session.version
        # The answer has a row for each partition.
        cores = self._session.sparkContext.defaultParallelism
        self._session.conf.set("spark.sql.shuffle.partitions", str(cores))
        # What every query loads is there before anybody waits for it.
        self.answer([], [])

    def answer(
        self, places: Sequence[Place], headers: Sequence[tuple[str, str]]
    ) -> list[tuple[str, int, str]]:
        """Count.

        Args:
            places: the files; of all others nobody reads anything.
            headers: partition and line of what is no record of lines.

        Returns:
            Partition, records, and the sum of their checksums in decimal digits, by partition.

        Raises:
            Exception: Spark's own, of a file that is not what it is said to be.
        """
        frames = [self._text(places, headers)]
        if any(kind == "parquet" for _, kind, _ in places):
            frames.append(self._parquet([one for one in places if one[1] == "parquet"]))
        records = frames[0]
        for one in frames[1:]:
            records = records.unionByName(one)
        records.createOrReplaceTempView("records")
        return [(row[0], int(row[1]), row[2]) for row in self._session.sql(QUESTION).collect()]

    def _text(self, places: Sequence[Place], headers: Sequence[tuple[str, str]]) -> DataFrame:
        texts = [one for one in places if one[1] != "parquet"]
        context = self._session.sparkContext
        tasks = max(1, min(len(texts), context.defaultParallelism * _TASKS_PER_CORE))
        known: dict[str, set[str]] = {}
        for path, line in headers:
            known.setdefault(path, set()).add(line)
        found = context.parallelize(texts, tasks).flatMap(partial(_rows, headers=known))
        return self._session.createDataFrame(
            found, "partition string, record string", verifySchema=False
        )

    def _parquet(self, places: Sequence[Place]) -> DataFrame:
        names = [(Path(file).name, path) for file, _, path in places]
        by_name = self._session.createDataFrame(names, "name string, partition string")
        files = [file for file, _, _ in places]
        rows = self._session.read.option("mergeSchema", "true").parquet(*files)
        columns = ", ".join(f"`{one.replace('`', '``')}`" for one in sorted(rows.columns))
        record = f"to_json(struct({columns})) AS record"
        named = rows.selectExpr("_metadata.file_name AS name", record)
        return named.join(by_name, "name").select("partition", "record")


def _rows(place: Place, headers: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    file, kind, path = place
    # What is no UTF-8 stays apart from all else.
    text = _plain(Path(file).read_bytes()).decode("utf-8-sig", "surrogateescape")
    if kind == "json":
        records: Iterable[str] = map(_as_text, json_records(text))
    else:
        passed = headers.get(path, set())
        lines = (line.rstrip("\r") for line in text.split("\n"))
        records = (_as_text(line) for line in lines if line and line not in passed)
    return ((path, one) for one in records)


def _plain(body: bytes) -> bytes:
    """A file's bytes without their compression, of several members too."""
    if body.startswith(_ZSTD_MAGIC):
        with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as stream:
            return bytes(stream.readall())
    plain = bytearray()
    if not body.startswith(_GZIP_MAGIC):
        return body
    while body:
        member = zlib.decompressobj(_GZIP)
        plain += member.decompress(body)
        if not member.eof:
            raise ValueError("a gzip member is cut off")
        body = member.unused_data
    return bytes(plain)


def json_records(text: str) -> Iterator[Any]:
    """Each JSON value of a text; of an array its elements, of a CloudTrail document its records.

    Numbers stay as they are written, and names of an object in their order.

    Raises:
        ValueError: something in it is no JSON.
    """
    decoder = json.JSONDecoder(
        object_pairs_hook=_Pairs, parse_float=_Number, parse_int=_Number, strict=False
    )
    at = _past_blanks(text, 0)
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        at = _past_blanks(text, at)
        if isinstance(value, _Pairs) and len(value) == 1 and value[0][0] == _DOCUMENT:
            value = value[0][1] if type(value[0][1]) is list else value
        if type(value) is list:
            yield from value
        else:
            yield value


class _Pairs(list[Any]):
    """The names and values of an object, which no array is equal to."""


class _Number(str):
    """A number as it is written, which no text is equal to."""

    __slots__ = ()


def _past_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()


def _as_text(value: Any) -> str:
    return json.dumps(_told_apart(value))


def _told_apart(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return {"object": [[name, _told_apart(one)] for name, one in value]}
    if isinstance(value, _Number):
        return {"number": str(value)}
    return [_told_apart(one) for one in value] if isinstance(value, list) else value
