"""The loop that the worker's own costs are told by proves what it joins."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from compactor_dev.benchmark.datasets import SETS, objects
from compactor_dev.benchmark.proving import Proved, Sink

TRAIL = json.dumps({"Records": [{"eventName": "a", "n": [1]}, {"eventName": "b"}]}).encode()


def test_lines_stay_the_very_bytes_they_are() -> None:
    proved, lines = Proved(), b'{"a": 1}\n{"b": [2]}\n'
    assert proved.take(lines) is lines
    assert proved.records == 2


def test_records_of_cloudtrail_become_one_document() -> None:
    proved = Proved()
    document = json.loads(proved.take(TRAIL) + proved.take(TRAIL) + proved.closing)
    assert document == {"Records": 2 * json.loads(TRAIL)["Records"]}
    assert proved.records == 4


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"a": 1}\n{"b": 2\n',
        b'{"a": 1}{"b": 2}\n',
        b'{"a": 1},{"b": 2}\n',
        b'{"a": 1}\n[2]\n',
        b'{"a": "\xff"}\n',
        b'{"a": 1}',
        TRAIL[:-3],
    ],
)
def test_what_is_no_whole_record_ends_the_loop(damaged: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        Proved().take(damaged)


@pytest.mark.parametrize("name", ["json-4k", "cloudtrail"])
def test_every_record_of_a_set_comes_out(name: str) -> None:
    proved = Proved()
    stored = [one.body for one in objects(SETS[name].reduced(3))]
    for body in stored:
        proved.take(gzip.decompress(body) if SETS[name].gzip else body)
    assert proved.records == 3 * SETS[name].rows


@pytest.mark.parametrize("blocks", [0, 1, 3])
def test_an_encoded_file_is_one_member_with_all_that_was_written(blocks: int) -> None:
    file = io.BytesIO()
    sink = Sink(file, encoded=True)
    written = [bytes([65 + number]) * 900_000 for number in range(blocks)]
    for data in written:
        sink.write(data)
    sink.close()
    assert gzip.decompress(file.getvalue()) == b"".join(written)


def test_a_file_that_is_not_encoded_has_the_bytes_as_they_are() -> None:
    file = io.BytesIO()
    sink = Sink(file, encoded=False)
    sink.write(b"ab")
    sink.write(b"c")
    sink.close()
    assert file.getvalue() == b"abc"
