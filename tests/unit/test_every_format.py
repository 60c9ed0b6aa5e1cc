"""Everything that lists formats outside their FormatSpec reads each of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.errors import InvalidInput
from compactor.log.log import CommitLog
from compactor.model import Format
from compactor.readers.formats import reading_of
from compactor_cli.record_comparison import compare
from tests.support.examples import PARTITION, settings
from tests.support.world import World


def rows(*numbers: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": numbers}), sink)
    return bytes(sink.getvalue())


# Two sources of each format, with two records and one.
SOURCES = {
    Format.JSON_LINES: (b'{"id":1}\n{"id":2}\n', b'{"id":3}\n'),
    Format.TEXT: (b"one\ntwo\n", b"three\n"),
    Format.CSV: (b"id,name\n1,a\n2,b\n", b"id,name\n3,c\n"),
    Format.TSV: (b"id\tname\n1\ta\n2\tb\n", b"id\tname\n3\tc\n"),
    Format.VPC_FLOW: (b"version srcaddr\n2 1.1.1.1\n2 2.2.2.2\n", b"version srcaddr\n2 3.3.3.3\n"),
    Format.CLOUDFRONT: (
        b"#Version: 1.0\n#Fields: date x\n2026\t1\n2026\t2\n",
        b"#Version: 1.0\n#Fields: date x\n2026\t3\n",
    ),
    Format.CLOUDTRAIL: (b'{"Records":[{"id":1},{"id":2}]}', b'{"Records":[{"id":3}]}'),
    Format.UNDELIMITED_JSON: (b'{"id":1}{"id":2}', b'{"id":3}'),
    Format.JSON_ARRAY: (b'[{"id":1},{"id":2}]', b'[{"id":3}]'),
    Format.JSON_LIST: (b'{"findings":[{"id":1},{"id":2}]}', b'{"findings":[{"id":3}]}'),
    Format.PARQUET: (rows(1, 2), rows(3)),
}
# No engine reads them as rows, unless they are written on lines.
NOT_READ = {Format.JSON_ARRAY, Format.JSON_LIST}


def compacted(format: Format) -> World:
    header = {"header": True} if format in (Format.CSV, Format.TSV) else {}
    world = World(formats=[{"format": format.value, **header}])
    for number, body in enumerate(SOURCES[format]):
        world.put(str(number), body)
    receipt = world.run()
    assert (receipt.counts.objects_in, receipt.counts.objects_out) == (2, 1)
    return world


@pytest.mark.parametrize("format", Format)
def test_verify_reads_each_record(format: Format) -> None:
    world = compacted(format)
    (commit,) = CommitLog(world.store, world.settings, PARTITION).every_commit()
    assert commit.output is not None
    assert commit.output.format is format
    assert commit.output.records == 3
    assert compare(commit, world.store) is None


@pytest.mark.parametrize("format", Format)
def test_engines_read_each_format_or_the_table_is_refused(format: Format) -> None:
    if format in NOT_READ:
        with pytest.raises(InvalidInput, match="engines read JSON of one object a line"):
            reading_of(format, settings())
    assert reading_of(format, settings(), lines=format in NOT_READ).serde
