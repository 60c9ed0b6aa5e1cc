"""Spark sees every record of undelimited JSON in its output, and one of a line in its source."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from compactor.formats import framer_for
from compactor.model import Compression, Format, Signature

SOURCE = b'{"a":1}{"a":2}{"a":3}'


def test_spark_reads_every_object_once_they_are_on_lines(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    framer = framer_for(Signature(Format.UNDELIMITED_JSON, Compression.NONE))
    output = b"".join(framer.frame(SOURCE).slice)

    def seen(name: str, content: bytes) -> list[int]:
        (tmp_path / name).write_bytes(content)
        return [row.a for row in spark_session.read.json(str(tmp_path / name)).collect()]

    assert seen("source.json", SOURCE) == [1]
    assert seen("output.json", output) == [1, 2, 3]
