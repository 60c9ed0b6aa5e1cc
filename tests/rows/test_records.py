"""Sources are cut into records exactly, before any of them is converted."""

from __future__ import annotations

from typing import Any

import pytest

from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason
from compactor.outputs import plain_content
from compactor.outputs.detection import detector
from compactor.ports import SourceBody
from compactor.rows import records as reading
from compactor.rows.records import Block, blocks_of
from tests.support.examples import columns, settings, source


def blocks_of_body(body: SourceBody, **given: object) -> list[Block]:
    made = settings(**given)
    content = plain_content.read(body, made)
    return [*blocks_of(content, body.source.key, made, detector(made))]


def blocks(name: str, content: bytes, **given: object) -> list[Block]:
    return blocks_of_body(SourceBody(source(name), content), **given)


def records(name: str, content: bytes, **given: object) -> list[bytes]:
    found = blocks(name, content, **given)
    return [one for block in found for one in block.records]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.json", b'{"a":1}', [b'{"a":1}']),
        ("a.json", b'\xef\xbb\xbf{"a":1}\r\n\r\n \n{"a":2}\n', [b'{"a":1}', b'{"a":2}']),
        ("a.json", b'{"a":1}{"a":2}\n{"a":3}', [b'{"a":1}', b'{"a":2}', b'{"a":3}']),
        ("a.csv", b"h,i\n1,2\r\n\n3,4", [b"1,2", b"3,4"]),
        ("a.csv", b"h,i\n1,2\n3\n", [b"1,2", b"3"]),
        ("a.csv", b'h,i\n"1\r\n\n,",2\n3,4', [b'"1\r\n\n,",2', b"3,4"]),
        ("a.csv", b'h,i\n5" pipe,2\n3,"4"\n', [b'5" pipe,2', b'3,"4"']),
        ("a.csv", b'h,i\nx"y,"open\nz"\n3,4', [b'x"y,"open\nz"', b"3,4"]),
        ("a.csv", b'"h\nh",i\n1,2\n', [b"1,2"]),
        ("a.csv", b"h,i\n", []),
        ("a.tsv", b'h\ti\n"1"\t2"\n', [b'"1"\t2"']),
    ],
)
def test_each_record_is_given_once_and_whole(
    name: str, content: bytes, expected: list[bytes]
) -> None:
    assert records(name, content) == expected


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b'h,i\n1,"2\n3,4\n', "open_quote: record 2 does not end"),
        ("a.csv", b"h,i\n1,2\nh,i\n", "its header occurs again"),
        ("a.csv", b"h,H\n1,2\n", "its header names the column 'H' twice"),
        ("a.csv", b"h,\n1,2\n", "a column of its header has no name"),
        ("a.log", b"2026-01-02T03:04:05Z started\n", "no log whose fields are known"),
        ("a.txt", b"<a>\n</a>\n", "neither its name nor its first lines"),
        ("a.csv", b"h,\xff\n1,2\n", 'it is not UTF-8.*encoding = "single_byte"'),
    ],
)
def test_what_cannot_be_cut_into_records_is_refused(name: str, content: bytes, said: str) -> None:
    with pytest.raises(UnreadableSource, match=said):
        blocks(name, content)


def test_bytes_that_are_no_utf_8_name_no_column() -> None:
    with pytest.raises(UnreadableSource, match="its header is not UTF-8"):
        blocks("a.csv", b"h,\xff\n1,2\n", formats=columns(encoding="single_byte"))


def names(content: bytes, parquet_schema: tuple[str, ...] | None = None) -> Any:
    made = settings(formats=columns(header=False, delimiter=";"))
    content_of = plain_content.read(SourceBody(source("a.csv"), content), made)
    key = source("a.csv").key
    return next(blocks_of(content_of, key, made, detector(made), parquet_schema)).kind.header


def test_rows_without_names_are_named_by_the_schema_or_as_spark_does() -> None:
    content = b"10.0.0.1;GET;/health\n10.0.0.2;GET;/a\n"
    assert names(content, ("ip", "verb", "path")) == ("ip", "verb", "path")
    assert names(content) == ("_c0", "_c1", "_c2")
    with pytest.raises(UnreadableSource, match="has 3 fields, parquet_schema has 2 columns"):
        names(content, ("ip", "verb"))


def test_a_long_source_is_given_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BLOCK_BYTES", 100)
    lines = [b'{"n":%d}' % number for number in range(100)]
    found = blocks("a.json", b"\n".join(lines))
    assert len(found) > 5
    assert [one for block in found for one in block.records] == lines
    firsts = [lines.index(block.records[0]) for block in found]
    assert [block.first for block in found] == firsts


def test_a_line_longer_than_a_document_may_be_is_refused() -> None:
    longest = 1_048_576
    body = b'{"a":"' + b"x" * 17 * longest + b'"}'
    chunks = [body[at : at + longest] for at in range(0, len(body), longest)]
    given = SourceBody(source("a.json", len(body)), chunks=lambda: iter(chunks))
    with pytest.raises(UnreadableSource, match=r"exceeds 1,048,576 bytes"):
        blocks_of_body(given, format="json_lines", max_document_bytes=longest)
    with pytest.raises(UnreadableSource, match=r"no line of it ends within .*formats decides"):
        blocks_of_body(given, max_document_bytes=longest)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[1]", QuarantineReason.UNKNOWN_FORMAT),
        (b'{"a":1,}', QuarantineReason.UNKNOWN_FORMAT),
        (b'{"a":"\xff"}', QuarantineReason.ENCODING),
        (b'{"a":1', QuarantineReason.OPEN_END),
    ],
)
def test_a_source_that_is_not_certainly_json_gives_no_record(
    line: bytes, reason: QuarantineReason
) -> None:
    with pytest.raises(UnreadableSource) as caught:
        blocks("a.json", b'{"first":1}\n' + line)
    assert caught.value.reason == reason


def test_objects_beside_each_other_on_a_line_are_records_each() -> None:
    assert records("a.json", b'{"first":1}\n{"a":1} {"a":2}') == [
        b'{"first":1}',
        b'{"a":1} ',
        b'{"a":2}',
    ]
