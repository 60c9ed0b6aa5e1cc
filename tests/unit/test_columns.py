"""CSV and TSV: framing, counting and splitting agree with Python's csv module."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.errors import UnreadableSource
from compactor.formats import detect, framer_for
from compactor.formats.columns import Dialect, fields_of, records_of, unquoted
from compactor.formats.declaration import Declaration, parse_formats
from compactor.formats.framing import Framed, Framer
from compactor.log.manifest import restore_slice
from compactor.model import Compression
from tests.support.framing import facts_of

BOM = b"\xef\xbb\xbf"
HEADED = Declaration("*", "csv", header=True)
ROWS = Declaration("*", "csv", header=False)


def framer_of(content: bytes, declared: Declaration = HEADED) -> Framer:
    detected = detect(content, "x", complete=True, declaration=declared)
    assert detected is not None
    return framer_for(detected.signature(Compression.NONE))


def placed(contents: list[bytes], declared: Declaration) -> tuple[bytes, int]:
    """The output and its number of records, once every source was given back from its slice."""
    framer = framer_of(contents[0], declared)
    output, records = framer.opening(), 0
    for content in contents:
        framed = framer.frame(content)
        body = b"".join(framed.slice)
        assert restore_slice(body, facts_of(framed)) == content
        assert streamed(framer, content) == framed._replace(slice=(body,))
        output += body
        records += framed.records
    return output, records


def streamed(framer: Framer, content: bytes) -> Framed:
    """The same source, three bytes at a time."""
    stream = framer.stream()
    assert stream is not None
    pieces = [
        bytes(p) for at in range(0, len(content), 3) for p in stream.feed(content[at : at + 3])
    ]
    framed = stream.finish()
    return framed._replace(slice=(b"".join(pieces) + b"".join(framed.slice),))


def read(body: bytes, delimiter: str = ",") -> list[list[str]]:
    lines = io.StringIO(body.decode(), newline="")
    return [row for row in csv.reader(lines, delimiter=delimiter) if row]


texts = st.text('ab,;"\n é', max_size=6)
tables = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(texts, min_size=width, max_size=width), min_size=1, max_size=5)
)


def written(rows: list[list[str]], end: str, delimiter: str = ",") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator=end).writerows(rows)
    return text.getvalue().encode()


ends = st.sampled_from(["\n", "\r\n"])


@given(tables, ends, st.sampled_from(",;|\t"), st.booleans(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_joined_rows_are_those_of_the_sources(
    rows: list[list[str]], end: str, delimiter: str, ended: bool, bom: bool
) -> None:
    names = [f"name{number}" for number in range(len(rows[0]))]
    header = written([names], end, delimiter)
    body = written(rows, end, delimiter)
    content = BOM * bom + header + (body if ended else body.removesuffix(end.encode()))
    declared = Declaration("*", "csv", header=True, delimiter=delimiter)
    output, records = placed([content, header, content, header.strip()], declared)
    expected = read(body, delimiter=delimiter)
    assert read(output, delimiter=delimiter) == [names, *expected, *expected]
    assert records == 2 * len(expected)


@given(tables, st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=200, deadline=None)
def test_rows_without_a_header_are_joined_whole(rows: list[list[str]], end: str) -> None:
    content = written(rows, end)
    output, records = placed([content, content.removesuffix(end.encode())], ROWS)
    assert read(output) == read(content) * 2
    assert records == 2 * len(read(content))


@given(tables, st.integers(1, 9))
@settings(max_examples=200, deadline=None)
def test_fields_are_those_that_the_csv_module_reads(rows: list[list[str]], size: int) -> None:
    content = written(rows, "\n")
    detected = detect(content, "x", complete=True, declaration=ROWS)
    assert detected is not None
    chunks = (content[at : at + size] for at in range(0, len(content), size))
    found = [
        [unquoted(field, Dialect()) for field in fields_of(record, Dialect())]
        for record in records_of(chunks, Dialect())
    ]
    assert found == read(content)


def refused(contents: list[bytes], declared: Declaration) -> Iterator[str]:
    framer = framer_of(contents[0], declared)
    for content in contents[1:]:
        with pytest.raises(UnreadableSource) as whole:
            framer.frame(content)
        with pytest.raises(UnreadableSource) as in_chunks:
            streamed(framer, content)
        assert in_chunks.value.reason == whole.value.reason
        yield str(whole.value)


def test_a_source_that_contradicts_is_refused_with_the_record() -> None:
    good = b"id,name\n1,ann\n"
    bad = [
        b"id,name\n1,ann\n2,bob,x\n",
        b"id,name\n1,ann\n2\n",
        b'id,name\n1,"ann\n',
        b'id,name\n1,"ann"x\n',
        b"id,name\n1,ann\nid,name\n2,bob\n",
        b"id,name\n1,ann\nid,name",
        b"id,name\n1,ann\r\n",
        b"id,name\n1,ann\r",
        b"id,name\n1,a\rb\n",
    ]
    assert list(refused([good, *bad], HEADED)) == [
        "malformed_document: record 2 has 3 fields, the first has 2: '2,bob,x'",
        "malformed_document: record 2 has 1 fields, the first has 2: '2'",
        "open_quote: record 1 does not end as a record of this dialect: '1,\"ann'",
        "malformed_document: record 1 does not end as a record of this dialect: '1,\"ann\"x'",
        "malformed_document: its header occurs again among its records; it starts with 'id,name'",
        "malformed_document: its header occurs again among its records; it starts with 'id,name'",
        "malformed_document: record 1 has another line end than the first: '1,ann\\r'",
        "malformed_document: record 1 does not end as a record of this dialect: '1,ann\\r'",
        "malformed_document: record 1 does not end as a record of this dialect: '1,a\\rb'",
    ]


def test_another_header_or_line_end_makes_another_group() -> None:
    def signed(content: bytes) -> object:
        detected = detect(content, "x", complete=True, declaration=HEADED)
        assert detected is not None
        return detected.signature(Compression.NONE)

    others = [b"id,Name\n1,a\n", b"name,id\n1,a\n", b"id,name\r\n1,a\r\n", b"id,name,x\n1,a,b\n"]
    assert len({signed(content) for content in [b"id,name\n1,a\n", *others]}) == 5
    assert signed(b"id,name\n") == signed(BOM + b"id,name\n5,b\n")


@pytest.mark.parametrize(
    ("options", "content", "rows"),
    [
        ({"quote": "none"}, b'id,text\n1,5" pipe\n2,"open\n', [["1", '5" pipe'], ["2", '"open']]),
        ({"escape": "backslash"}, b'id,text\n1,"a\\"b"\n2,a\\,b\n', [["1", 'a"b'], ["2", "a,b"]]),
        ({"delimiter": "\x01"}, b"id\x01text\n1\x01a,b\n", [["1", "a,b"]]),
        ({"format": "tsv"}, b'id\ttext\n1\t"a\nb"\n', [["1", "a\nb"]]),
    ],
)
def test_a_dialect_is_declared(options: dict, content: bytes, rows: list[list[str]]) -> None:
    (declared,) = parse_formats([{"format": "csv", "header": True, **options}])
    output, records = placed([content, content], declared)
    assert records == 2 * len(rows)
    dialect = Dialect.of(declared)
    detected = detect(output, "x", complete=True, declaration=declared)
    assert detected is not None
    found = [
        [unquoted(field, dialect) for field in fields_of(record, dialect)]
        for record in records_of([output], dialect)
    ]
    assert found[1:] == rows * 2


def test_blank_lines_are_no_records() -> None:
    output, records = placed([b"a,b\n\n1,2\n\n\n3,4\n\n", b"a,b\n"], HEADED)
    assert (output, records) == (b"a,b\n\n1,2\n\n\n3,4\n\n", 2)


def test_a_record_without_an_end_is_refused_before_memory_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("compactor.formats.columns.LONGEST_RECORD", 1_000)
    stream = framer_of(b"a,b\n").stream()
    assert stream is not None
    list(stream.feed(b'a,b\n1,"' + b"x" * 900))
    with pytest.raises(UnreadableSource, match=r"record 1 exceeds 1,000 bytes"):
        stream.feed(b"x" * 200)
