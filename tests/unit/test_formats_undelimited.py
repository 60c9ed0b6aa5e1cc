"""JSON objects without a newline between them: separated, put on lines, given back."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.errors import UnreadableSource
from compactor.formats import framer_for
from compactor.formats.framing import Framed, Framer
from compactor.log.manifest import restore_slice
from compactor.model import Compression, Format, QuarantineReason, Signature
from tests.support.examples import TOO_DEEP
from tests.support.framing import facts_of

UNDELIMITED = Signature(Format.UNDELIMITED_JSON, Compression.NONE)
BOM = b"\xef\xbb\xbf"

nasty_text = st.text('}{"\\[]a\té\n', max_size=12)
json_values = st.recursive(
    st.integers(-9, 9) | nasty_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(nasty_text, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(nasty_text, json_values, max_size=3)
gaps = st.sampled_from(["", "", "", " ", "\t", " \t ", "\n", "\r\n", "\n\n"])
sources = st.tuples(
    st.lists(st.tuples(objects, gaps), max_size=6),
    st.text(" \r\n", max_size=2),
    st.booleans(),
    st.booleans(),
)
Source = tuple[list[tuple[dict, str]], str, bool, bool]


def framer() -> Framer:
    return framer_for(UNDELIMITED)


def written(source: Source) -> bytes:
    found, before, bom, ascii_only = source
    text = "".join(json.dumps(record, ensure_ascii=ascii_only) + gap for record, gap in found)
    return (BOM if bom else b"") + (before + text).encode()


def join(target: Framer, contents: list[bytes]) -> tuple[bytes, list[Framed]]:
    output, placed = target.opening(), []
    for content in contents:
        framed = target.frame(content)
        piece = b"".join(framed.slice)
        assert restore_slice(piece, facts_of(framed)) == content
        output += framed.separator + piece
        placed.append(framed)
    return output + target.closing(), placed


@given(st.lists(sources, max_size=4))
@settings(max_examples=200, deadline=None)
def test_every_object_gets_a_line_of_its_own_and_every_source_comes_back(
    found: list[Source],
) -> None:
    output, framed = join(framer(), [written(source) for source in found])
    lines = output.split(b"\n")[:-1]
    expected = [record for records, *_ in found for record, _ in records]
    assert [json.loads(line) for line in lines if line.strip()] == expected
    assert sum(f.records for f in framed) == len(lines)


def test_readers_of_lines_and_of_concatenated_json_see_every_object(tmp_path: Path) -> None:
    """DuckDB's reader of JSON lines refuses the source; both of its readers take the output."""
    source = b'{"a":1}{"a":2} {"a":3}'
    (tmp_path / "source.json").write_bytes(source)
    (tmp_path / "output.json").write_bytes(join(framer(), [source])[0])
    query = "SELECT a FROM read_json(?, format = ?)"
    with duckdb.connect() as engine:

        def seen(name: str, how: str) -> list[tuple[int]]:
            return engine.execute(query, [str(tmp_path / name), how]).fetchall()

        with pytest.raises(duckdb.InvalidInputException, match="unexpected content"):
            seen("source.json", "newline_delimited")
        for how in ("newline_delimited", "unstructured"):
            assert seen("output.json", how) == [(1,), (2,), (3,)]


def test_a_source_without_newlines_needs_no_edits() -> None:
    for content in (b'{"a":1}{"a":2} {"a":3}', b'{"a":1}{"a":2} {"a":3}\r\n'):
        (framed,) = join(framer(), [content])[1]
        assert framed.newlines_stand_for == b""
        assert not framed.edits
        assert b"".join(framed.slice) == b'{"a":1}\n{"a":2} \n{"a":3}\n'


def test_newlines_of_the_source_are_distinguished_from_inserted_ones() -> None:
    content = b'{"a":1}{"a":2}\n{"a":3}{"a":4}'
    (framed,) = join(framer(), [content])[1]
    assert b"".join(framed.slice) == b'{"a":1}\n{"a":2}\n{"a":3}\n{"a":4}\n'
    assert [edit.offset for edit in framed.edits] == [7, 23]


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":1}{"a":\n2}',
        b'{"a":1}\n{"a":2}{\n"a":3}\n{"a":4}',
        b'{"a":1}{"a":2,}',
        b'{"a":1}{"a":tru}{"a":3}',
        b'{"a":[\n{}]}{"b":1}',
    ],
)
def test_a_source_of_which_a_line_would_be_no_whole_object_is_refused(content: bytes) -> None:
    with pytest.raises(UnreadableSource) as caught:
        framer().frame(content)
    assert caught.value.reason == QuarantineReason.MALFORMED


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":1}{"b":"open',
        b'{"a":1}{"b":"open}',
        b'{"a":1}{"b":2',
        b'{"a":1}{"b":"x\\"}',
        b'{"a":1}{"b":{"c":2}',
        b'{"a":1}{"b":[{"c":2}',
    ],
)
def test_a_source_that_ends_within_an_object_is_refused(content: bytes) -> None:
    with pytest.raises(UnreadableSource) as caught:
        framer().frame(content)
    assert caught.value.reason == QuarantineReason.OPEN_END


@pytest.mark.parametrize("content", [b"text", b'[1]{"a":1}', b'{"a":1}[1]'])
def test_a_source_that_does_not_start_and_end_with_an_object_is_refused(content: bytes) -> None:
    with pytest.raises(UnreadableSource) as caught:
        framer().frame(content)
    assert caught.value.reason == QuarantineReason.MALFORMED


def test_blank_sources_leave_nothing() -> None:
    contents = [b"", b" \r\n", BOM, BOM + b"\n"]
    joined, framed = join(framer(), contents)
    assert joined == b""
    assert [f.records for f in framed] == [0, 0, 0, 0]


def test_objects_nested_too_deep_to_be_proven_whole_are_refused() -> None:
    deep = b'{"a":' * TOO_DEEP + b"1" + b"}" * TOO_DEEP
    with pytest.raises(UnreadableSource) as caught:
        framer().frame(deep + deep)
    assert caught.value.reason == QuarantineReason.MALFORMED


def test_nesting_and_long_blanks_are_no_obstacle() -> None:
    deep = b'{"a":' * 200 + b"1" + b"}" * 200
    blank = b" " * 1_000_000
    content = deep + deep + b'{"b":"}' + blank + b'{"}' + blank + deep
    (framed,) = join(framer(), [content])[1]
    assert framed.records == 4
