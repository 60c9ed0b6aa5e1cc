"""Sources of every format, and a reader of records that shares no code with the compactor.

A record is what a query engine would see: a line; for JSON a value; for CSV a line with its header.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import zstandard
from hypothesis import strategies as st

Records = Counter[tuple[str, bytes]]
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Made:
    """One generated source.

    Attributes:
        name: the last segment of its key.
        plain: its decompressed bytes.
        stored: its bytes on S3.
        records: its records.
        damaged: it cannot be read, and must be left alone.
    """

    name: str
    plain: bytes
    stored: bytes
    records: Records
    damaged: bool = False


def read_object(key: str, stored: bytes) -> Records:
    """Return the records of one object, by its name and bytes."""
    plain = decoded(stored).removeprefix(BOM)
    if key.removesuffix(".gz").removesuffix(".zst").endswith(".csv"):
        header, _, body = plain.partition(b"\n")
        return _rows(header.rstrip(b"\r"), body)
    if ".json" in key:
        return Counter(("json", value) for value in _json_values(plain))
    return Counter(("text", line) for line in lines(plain))


def decoded(stored: bytes) -> bytes:
    """Return the decompressed bytes; the compression is detected from the bytes."""
    if stored.startswith(b"\x1f\x8b"):
        return gzip.decompress(stored)
    if stored.startswith(b"\x28\xb5\x2f\xfd"):
        with zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True) as reader:
            return reader.read()
    return stored


def lines(body: bytes) -> list[bytes]:
    """Return the lines of a body, without their line feeds."""
    return body.removesuffix(b"\n").split(b"\n") if body else []


def _json_values(plain: bytes) -> Iterator[bytes]:
    trail = _trail(plain)
    if trail is not None:
        yield from (_canonical(record) for record in trail)
        return
    for line in lines(plain):
        yield from _values_of_line(line)


def _trail(plain: bytes) -> list[Any] | None:
    try:
        document = json.loads(plain)
    except ValueError:
        return None
    whole = isinstance(document, dict) and list(document) == ["Records"]
    return document["Records"] if whole else None


def _values_of_line(line: bytes) -> Iterator[bytes]:
    try:
        text = line.decode()
        found = list(_json_stream(text))
    except ValueError:
        found = [line]
    yield from found or [line]


def _json_stream(text: str) -> Iterator[bytes]:
    decoder = json.JSONDecoder()
    at = len(text) - len(text.lstrip())
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield _canonical(value)
        at += len(text[at:]) - len(text[at:].lstrip())


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


# The content of sources.

_strings = st.text(st.sampled_from("ab{}[]\",:\\'é日\n\t 0"), max_size=8)
_scalars = st.one_of(st.none(), st.booleans(), st.integers(-9, 99), _strings)
_members = st.dictionaries(st.sampled_from(["id", "a", "b c", "é"]), _scalars, max_size=3)
_objects = st.builds(lambda inner, outer: {**outer, "in": inner}, _members, _members)
_ends = st.sampled_from([b"\n", b"\n", b""])
_breaks = st.sampled_from([b"\n", b"\n", b"\r\n"])
_spaces = st.sampled_from(["", " ", "\n", "\r\n  "])


@st.composite
def _json_lines(draw: st.DrawFn) -> tuple[str, bytes, Records]:
    values = draw(st.lists(_objects, min_size=1, max_size=4))
    texts = [json.dumps(value, ensure_ascii=draw(st.booleans())).encode() for value in values]
    texts += draw(st.lists(st.sampled_from([b"", b" "]), max_size=2))
    plain = draw(_breaks).join(texts) + draw(_ends)
    return draw(st.sampled_from([".json", ".jsonl", ".dat"])), plain, _read_json(plain)


def _read_json(plain: bytes) -> Records:
    return Counter(("json", value) for line in lines(plain) for value in _values_of_line(line))


@st.composite
def _text(draw: st.DrawFn) -> tuple[str, bytes, Records]:
    some = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=12).map(
        str.encode
    )
    # Lines of an access log may have any bytes, but no quote that is still open at the end.
    stamp = b"a - - [31/Jan/2026:12:00:00 +0000] t"
    found = draw(st.lists(some, min_size=1, max_size=5))
    texts = [stamp + line.replace(b'"', b"'") + b"." for line in found]
    texts += draw(st.lists(st.sampled_from([b"", b" "]), max_size=2))
    plain = draw(_breaks).join(texts) + draw(_ends)
    name = draw(st.sampled_from([".log", ".txt", ".dat", ".json"]))
    return name, plain, Counter(("text", line) for line in lines(plain))


_UNCERTAIN = (
    b"no json\n",
    b'{"a": 1}\nno json\n',
    b'{"a": 1}\n{"cut": "off',
    b'{\n  "a": 1\n}\n',
    b"[1, 2]\n",
    b'[{"a": 1}, 2]\n',
    b'\x1e{"a": 1}\n',
    b"<a><b/></a>\n",
    b"a: 1\n",
    b"\xff\xfea\0",
    b"\x82\xa1a\x01\xa1b\x02",
    b"2026-01-31 12:00:00 a\r2026-01-31 12:00:01 b",
    b"2026-01-31 12:00:00 a\r\n2026-01-31 12:00:01 caf\xc3",
)


@st.composite
def _csv(draw: st.DrawFn) -> tuple[str, bytes, Records]:
    header = draw(st.sampled_from([b"id,name", b"id,name,kind", b'"id",b']))
    end = draw(_breaks)
    row = st.sampled_from([b"1,a", b'2,"a,b"', b'3,"two\nlines"', b"4,\xc3\xa9", b",", b""])
    more = b",x" * (header.count(b",") - 1)
    rows = [one + more if one else b"" for one in draw(st.lists(row, max_size=4))]
    plain = end.join([header, *rows]) + draw(st.sampled_from([b"", end]))
    body = plain.partition(b"\n")[2]
    return ".csv", plain, _rows(header, body)


def _rows(header: bytes, body: bytes) -> Records:
    rows = csv.reader(io.StringIO(body.decode(), newline=""))
    return Counter((header.decode(), repr(row).encode()) for row in rows if row)


@st.composite
def _cloudtrail(draw: st.DrawFn) -> tuple[str, bytes, Records]:
    values = draw(st.lists(_objects, max_size=4))
    space = draw(_spaces)
    indent = draw(st.sampled_from([None, 1]))
    array = json.dumps(values, indent=indent, ensure_ascii=draw(st.booleans()))
    text = f'{space}{{{space}"Records"{space}:{space}{array}{space}}}{space}'
    records = Counter(("json", _canonical(value)) for value in values)
    return "_CloudTrail_x.json", text.encode(), records


@st.composite
def _undelimited(draw: st.DrawFn) -> tuple[str, bytes, Records]:
    values = draw(st.lists(_objects, min_size=2, max_size=5))
    texts = [json.dumps(value) for value in values]
    # The first line must have two objects; after them line breaks may be anywhere.
    gaps = ["", *(draw(st.sampled_from(["", " ", "\n", " \n"])) for _ in texts[2:])]
    text = texts[0] + "".join(gap + one for gap, one in zip(gaps, texts[1:], strict=True))
    plain = (text + draw(st.sampled_from(["", "\n", " "]))).encode()
    records = Counter(("json", _canonical(value)) for value in values)
    return draw(st.sampled_from([".json", "", ".dat"])), plain, records


_no_records: Records = Counter()
_nothing = st.sampled_from([b"", BOM]).map(lambda plain: (".log", plain, _no_records))
_uncertain = st.tuples(
    st.sampled_from([".json", ".dat"]), st.sampled_from(_UNCERTAIN), st.just(_no_records)
)
_contents = st.one_of(_json_lines(), _text(), _csv(), _cloudtrail(), _undelimited(), _nothing)


def _members_of(plain: bytes, cut: int) -> bytes:
    halves = (plain[:cut], plain[cut:])
    return b"".join(gzip.compress(half, mtime=0) for half in halves)


@st.composite
def made(draw: st.DrawFn) -> Made:
    """Generate a source of any format and compression, sometimes damaged."""
    if draw(st.integers(0, 7)) == 0:
        name, plain, records = draw(_uncertain)
        return Made(name, plain, plain, records, damaged=True)
    name, plain, records = draw(_contents)
    if not plain.startswith(BOM) and plain and draw(st.integers(0, 4)) == 0:
        plain = BOM + plain
    way = draw(st.sampled_from(["none", "none", "gzip", "members", "zstd"]))
    if way == "none":
        return Made(name, plain, plain, records)
    if way == "zstd":
        stored = zstandard.ZstdCompressor().compress(plain)
    elif way == "gzip":
        stored = gzip.compress(plain, mtime=0)
    else:
        stored = _members_of(plain, draw(st.integers(0, len(plain))))
    suffix = ".zst" if way == "zstd" else ".gz"
    if draw(st.integers(0, 5)) == 0:
        cut = draw(st.integers(1, 9 if way != "zstd" else 4))
        return Made(name + suffix, plain, stored[:-cut], Counter(), damaged=True)
    return Made(name + suffix, plain, stored, records)


def lines_of_json(count: int, seed: int = 0) -> bytes:
    """Return distinct lines of JSON, about 100 bytes each."""
    chance = random.Random(seed)
    rows = ({"n": n, "seed": seed, "text": chance.randbytes(30).hex()} for n in range(count))
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def all_records(contents: Sequence[tuple[str, bytes]]) -> Records:
    """Return the records of several objects."""
    total: Records = Counter()
    for key, stored in contents:
        total += read_object(key, stored)
    return total
