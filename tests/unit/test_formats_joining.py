"""Every format: sources joined into one output hold the same records, and come back again."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.encoding.codecs import decompress_stream
from compactor.encoding.encoders import encoder
from compactor.errors import UnreadableSource
from compactor.formats import Declaration, detect, framer_for, spec_of
from compactor.formats.framing import Framed, Framer
from compactor.log.manifest import SliceFacts, restore_slice
from compactor.model import Compression, Format, QuarantineReason, Signature
from tests.support.framing import facts_of

BOM = b"\xef\xbb\xbf"
MIB = 1 << 20
FLOW_HEADER = b"version srcaddr dstaddr action"
CLOUDFRONT_HEADER = b"#Version: 1.0\n#Fields: date time c-ip"
HEADERS = {
    Format.VPC_FLOW: FLOW_HEADER,
    Format.CLOUDFRONT: CLOUDFRONT_HEADER,
}
SIGNED = {**HEADERS, Format.JSON_LIST: b'{"Findings":[]}'}
STREAMED = [Format.TEXT, Format.JSON_LINES, *HEADERS]

line_ends = st.sampled_from([b"\n", b"\r\n"])
maybe = st.booleans()
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\{}[],é\n ', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
json_objects = st.dictionaries(st.text('ab"}{', max_size=3), json_values, max_size=3)


# Parquet is merged row by row; CSV and TSV have tests of their own.
JOINED = [one for one in Format if one not in (Format.PARQUET, Format.CSV, Format.TSV)]


def signature(format: Format) -> Signature:
    return Signature(format, Compression.NONE, SIGNED.get(format, b""))


def join(framer: Framer, sources: list[bytes]) -> tuple[bytes, list[Framed]]:
    """The output, once every source has been given back from its slice of it."""
    output = bytearray(framer.opening())
    places = []
    for content in sources:
        framed = framer.frame(content)
        output += framed.separator
        start = len(output)
        for piece in framed.slice:
            output += piece
        places.append((start, len(output), framed))
    output += framer.closing()
    for (start, end, framed), content in zip(places, sources, strict=True):
        assert restore_slice(bytes(output[start:end]), facts_of(framed)) == content
    return bytes(output), [framed for _, _, framed in places]


def cut(content: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in itertools.cycle(sizes):
        if at >= len(content):
            return
        yield content[at : at + size]
        at += size


def dressed(lines: list[bytes], end: bytes, *, ended: bool, bom: bool) -> bytes:
    """Lines as some writer would store them."""
    content = end.join(lines) + (end if lines and ended else b"")
    return (BOM if bom else b"") + content


@given(st.lists(st.binary(max_size=60), max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_joined_as_lines_and_come_back(sources: list[bytes]) -> None:
    output, framed = join(framer_for(signature(Format.TEXT)), sources)
    bodies = [content.removeprefix(BOM) for content in sources]
    lines = [body.removesuffix(b"\n").split(b"\n") for body in bodies if body]
    assert output == b"".join(line + b"\n" for body in lines for line in body)
    assert [f.records for f in framed if f.records] == [len(body) for body in lines]


@given(st.lists(st.tuples(st.lists(json_objects, max_size=4), line_ends, maybe, maybe), max_size=4))
@settings(max_examples=80, deadline=None)
def test_json_lines_keep_every_record(
    sources: list[tuple[list[dict], bytes, bool, bool]],
) -> None:
    contents = [
        dressed([json.dumps(record).encode() for record in records], end, ended=ended, bom=bom)
        for records, end, ended, bom in sources
    ]
    output, framed = join(framer_for(signature(Format.JSON_LINES)), contents)
    expected = [record for records, *_ in sources for record in records]
    assert [json.loads(line) for line in output.splitlines()] == expected
    assert sum(f.records for f in framed) == len(expected)


@given(
    st.sampled_from(list(HEADERS)),
    st.lists(st.tuples(st.lists(st.sampled_from([b"1 a", b"2 b"])), line_ends, maybe, maybe)),
)
@settings(max_examples=80, deadline=None)
def test_every_header_is_kept_once(
    format: Format, sources: list[tuple[list[bytes], bytes, bool, bool]]
) -> None:
    contents = [
        dressed([HEADERS[format], *lines], end, ended=ended, bom=bom)
        for lines, end, ended, bom in sources
    ]
    output, framed = join(framer_for(signature(format)), contents)
    header = HEADERS[format] + b"\n"
    assert output.startswith(header)
    assert output.count(HEADERS[format]) == 1
    expected = [line for lines, *_ in sources for line in lines]
    assert output.removeprefix(header).split() == b" ".join(expected).split()
    assert sum(f.records for f in framed) == len(expected)


def test_a_source_that_is_a_header_alone_has_no_records() -> None:
    for format, header in HEADERS.items():
        contents = [header, header + b"\n", header + b"\r\n", BOM + header, b"", BOM]
        output, framed = join(framer_for(signature(format)), contents)
        assert output == header + b"\n"
        assert [f.records for f in framed] == [0] * len(contents)


@pytest.mark.parametrize("format", list(HEADERS))
def test_another_header_is_refused_whole_or_streamed(format: Format) -> None:
    header = HEADERS[format]
    for content in (header[:-1], header + b"x\n1\n", b"x" + header + b"\n", header + b"\rx\n"):
        framer = framer_for(signature(format))
        with pytest.raises(UnreadableSource) as caught:
            framer.frame(content)
        assert caught.value.reason == QuarantineReason.MALFORMED
        streaming = framer.stream()
        assert streaming is not None
        with pytest.raises(UnreadableSource):
            _ = [list(streaming.feed(content)), streaming.finish()]


@given(
    st.sampled_from(STREAMED),
    maybe,
    st.sampled_from([b"", b"\n", b"\r\n", b"\r", BOM]),
    st.binary(max_size=80),
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
)
@settings(max_examples=250, deadline=None)
def test_streaming_gives_what_framing_the_whole_gives(
    format: Format, bom: bool, end: bytes, body: bytes, sizes: list[int]
) -> None:
    header = HEADERS.get(format, b"")
    content = (BOM if bom else b"") + header + end + body
    framer = framer_for(signature(format))
    streaming = framer_for(signature(format)).stream()
    assert streaming is not None
    try:
        whole = framer.frame(content)
    except UnreadableSource as error:
        with pytest.raises(UnreadableSource, match=error.reason):
            _ = [*map(list, map(streaming.feed, cut(content, sizes))), streaming.finish()]
        return
    pieces = [bytes(p) for chunk in cut(content, sizes) for p in streaming.feed(chunk)]
    last = streaming.finish()
    assert b"".join([*pieces, *map(bytes, last.slice)]) == b"".join(map(bytes, whole.slice))
    assert facts_of(last) == facts_of(whole)
    assert last.separator == whole.separator == b""


@pytest.mark.parametrize("format", [Format.TEXT, Format.JSON_LINES, Format.VPC_FLOW])
def test_a_line_of_64_mib_streams_in_a_few_megabytes(format: Format) -> None:
    chunk, header = b"x" * MIB, HEADERS.get(format, b"")
    streaming = framer_for(signature(format)).stream()
    assert streaming is not None
    length = 0
    tracemalloc.start()
    try:
        for data in itertools.chain([header + b"\n"], itertools.repeat(chunk, 64)):
            length += sum(map(len, streaming.feed(data)))
        last = streaming.finish()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    added = 0 if header else 1
    assert length + sum(map(len, last.slice)) == 64 * MIB + 1 + added
    assert last.records == 1 + added
    assert peak < 4 * MIB


def test_documents_are_not_streamed() -> None:
    whole = (Format.CLOUDTRAIL, Format.UNDELIMITED_JSON, Format.JSON_ARRAY, Format.JSON_LIST)
    for format in whole:
        assert framer_for(signature(format)).stream() is None


def test_content_passes_through_without_a_copy() -> None:
    content = b"a line\n" * 1000
    assert framer_for(signature(Format.TEXT)).frame(content).slice[0] is content
    framed = framer_for(signature(Format.VPC_FLOW)).frame(FLOW_HEADER + b"\n" + content)
    assert isinstance(framed.slice[0], memoryview)


@pytest.mark.parametrize("format", JOINED)
def test_a_view_is_framed_as_its_bytes_are(format: Format) -> None:
    bodies = {
        Format.CLOUDTRAIL: b'{"Records":[{"a":1},{"a":2}]}',
        Format.UNDELIMITED_JSON: b'{"a":1}{"a":2}\n',
        Format.JSON_ARRAY: b'[{"a":1},{"a":2}]',
        Format.JSON_LIST: b'{"Findings":[{"a":1},{"a":2}]}',
    }
    content = bodies.get(format, BOM + HEADERS.get(format, b"") + b"\nx\r\ny")
    whole, view = (framer_for(signature(format)).frame(c) for c in (content, memoryview(content)))
    assert b"".join(whole.slice) == b"".join(view.slice)
    assert facts_of(whole) == facts_of(view)


def json_example(format: Format, number: int) -> str:
    records = [{"n": number, "text": 'a "quoted" }{ text'}, {"n": number}]
    written = {
        Format.CLOUDTRAIL: json.dumps({"Records": records}),
        Format.UNDELIMITED_JSON: "".join(map(json.dumps, records)),
        Format.JSON_ARRAY: json.dumps(records, indent=number or None),
        Format.JSON_LIST: json.dumps({"Findings": records}, indent=1),
        Format.JSON_LINES: "\n".join(map(json.dumps, records)),
    }
    return written.get(format, "")


def example(format: Format, number: int) -> bytes:
    found = json_example(format, number)
    if found:
        return found.encode()
    match format:
        case Format.TEXT:
            stamp = b"2026-01-31T12:00:%02dZ" % number
            return b"%b INFO red\n%b WARN blue %d" % (stamp, stamp, number)
        case Format.VPC_FLOW:
            return HEADERS[format] + b"\n2 10.0.0.1 10.0.0.2 ACCEPT\n2 - - %d" % number
        case _:
            return HEADERS[format] + b"\nred green\nblue %d" % number


@pytest.mark.parametrize("compression", list(Compression))
@pytest.mark.parametrize("format", JOINED)
def test_sources_survive_from_encoded_source_to_encoded_output(
    format: Format, compression: Compression
) -> None:
    contents = [example(format, number) for number in range(5)]
    plain, seen = [], set()
    for content in contents:
        source = encode(compression, [content])
        plain.append(b"".join(decompress_stream((source,), compression)))
        declared = None if spec_of(format).recognise else Declaration("*", format)
        detected = detect(content, "x", complete=True, declaration=declared)
        assert detected is not None
        seen.add(detected.signature(compression))
    assert {(s.format, s.compression) for s in seen} == {(format, compression)}
    output, framed = join(framer_for(seen.pop()), plain)
    stored = encode(compression, list(cut(output, [7, 100])))
    pieces = decompress_stream(cut(stored, [11]), compression)
    assert b"".join(pieces) == output
    assert sum(f.records for f in framed) >= 10


def encode(compression: Compression, writes: list[bytes]) -> bytes:
    target = encoder(compression)
    return b"".join([*map(target.write, writes), target.finish()])


def test_facts_have_defaults_that_change_nothing() -> None:
    assert restore_slice(b"a\nb\n", SliceFacts(2)) == b"a\nb\n"
