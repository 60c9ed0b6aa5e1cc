"""Content that is not what its name says, nests without end, or hides in its header."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest
import zstandard

from compactor.errors import UnreadableSource
from compactor.formats import Declaration, detect, framer_for
from compactor.formats.framing import MOST_EDITS
from compactor.limits import WorkerLimits
from compactor.log.counts import BY_SETTINGS
from compactor.log.manifest import restore_slice
from compactor.model import Compression, Format, QuarantineReason, Signature
from tests.hostile.outcomes import compacted, quarantined
from tests.support.examples import ON_LINES, TOO_DEEP
from tests.support.framing import facts_of
from tests.support.parquet_example import PARQUET
from tests.support.records import BOM, Made, read_object
from tests.support.sources import Sources, of

LINES = b'{"a":1}\n{"a":2}\n'
LOG = b"2026-01-02 03:04:05 no json at all\n"
UNKNOWN, MALFORMED = QuarantineReason.UNKNOWN_FORMAT, QuarantineReason.MALFORMED
OPEN_QUOTE = QuarantineReason.OPEN_QUOTE
TOO_LARGE = QuarantineReason.TOO_LARGE
TRAIL = "_CloudTrail_x.json"

# Names that lie.


@pytest.mark.parametrize(
    ("name", "stored", "plain"),
    [
        (".log.gz", LOG, LOG),
        (".log.zst", LOG, LOG),
        (".log", gzip.compress(LOG, mtime=0), LOG),
        (".log.gz", zstandard.compress(LOG), LOG),
        (".json.zst", gzip.compress(LINES, mtime=0), LINES),
        (".csv", gzip.compress(b"id,name\n1,x\n", mtime=0), b"id,name\n1,x\n"),
        (".json", LOG, LOG),
        (".log", LINES, LINES),
        (".json", b'{"Records":[{"a":1}]}', b'{"Records":[{"a":1}]}'),
    ],
)
def test_the_bytes_decide_what_a_source_is_whatever_its_name_says(
    name: str, stored: bytes, plain: bytes
) -> None:
    made = Made(name, plain, stored, read_object(_as_read(name, plain), plain))
    Sources([made]).check_everything()


def _as_read(name: str, plain: bytes) -> str:
    """The name of the output it goes into, which tells the reader how to read it."""
    if plain.startswith(b"{"):
        return ".json"
    return name if ".csv" in name else ".log"


@pytest.mark.parametrize("name", [".json", ".csv", ".log", ".log.gz", TRAIL])
@pytest.mark.parametrize(
    "stored",
    [PARQUET, b"PK\x03\x04" + bytes(60), b"\x7fELF\2\1\1" + bytes(90), b"a\0b\n"],
    ids=["parquet", "zip", "program", "nul"],
)
def test_binary_content_is_left_alone_under_any_name(name: str, stored: bytes) -> None:
    assert quarantined(name, stored) is QuarantineReason.BINARY


def test_a_trail_that_is_no_document_is_compacted_as_what_it_is() -> None:
    made = of(TRAIL, LINES)
    Sources([made, of(TRAIL, b'{"Records":[{"a":3}]}')]).check_everything()


# Depth.

ARRAY = b"[" * TOO_DEEP + b"]" * TOO_DEEP
OBJECT = b'{"a":' * TOO_DEEP + b"1" + b"}" * TOO_DEEP


@pytest.mark.parametrize("deep", [ARRAY, OBJECT], ids=["arrays", "objects"])
def test_lines_nested_too_deep_to_be_proven_are_left_alone_unless_they_are_text(
    deep: bytes,
) -> None:
    line = b'{"deep":' + deep + b"}\n"
    assert quarantined(".json", line) is UNKNOWN
    assert quarantined(".json", line, format="json_lines") is UNKNOWN
    made = Made(".json", line, line, Counter())
    world = Sources([made, of(".json", LINES)], format="text")
    assert world.run().status == "done"
    world.check_restore()
    assert list(world.outputs.values()) == [line + LINES]


@pytest.mark.parametrize("deep", [ARRAY, OBJECT, ARRAY[: TOO_DEEP * 3 // 2], ARRAY[:TOO_DEEP]])
@pytest.mark.parametrize("formats", [[], ON_LINES])
def test_documents_nested_a_million_deep_are_left_alone(deep: bytes, formats: list[dict]) -> None:
    document = b'{"Records":[{"deep":' + deep + b"}]}"
    assert quarantined(TRAIL, document, formats=formats) is MALFORMED


def test_documents_nested_a_hundred_deep_are_compacted() -> None:
    deep = b'{"a":[' * 50 + b"]}" * 50
    compacted(TRAIL, b'{"Records":[' + deep + b"]}")


def test_undelimited_objects_nested_a_hundred_deep_are_distinguished() -> None:
    deep = b'{"a":' * 100 + b"1" + b"}" * 100
    source = b'{"first":1}' + deep + b'{"s":"}{"}' + deep
    framer = framer_for(Signature(Format.UNDELIMITED_JSON, Compression.NONE))
    assert detect(source, ".json", complete=True) is not None
    framed = framer.frame(source)
    assert framed.records == 4
    joined = b"".join(framed.slice)
    assert restore_slice(joined, facts_of(framed)) == source
    found = framer_for(Signature(Format.JSON_LINES, Compression.NONE)).frame(joined)
    assert found.records == 4


def test_a_first_object_nested_too_deep_to_check_leaves_the_source_alone() -> None:
    assert quarantined(".json", OBJECT + b'{"second":1}') is UNKNOWN


# Work grows with the size, not with its square.

TRAPS = {
    "braces in front of blanks": b"{}{}" + b"}" + b" " * 400_000 + b"}",
    "braces and blanks in turns": b"{}{}" + b"} " * 400_000 + b"}",
    "quotes": b'{}{"a":"' + b'\\"' * 400_000 + b'"}',
    "backslashes": b'{}{"a":"' + b"\\\\" * 400_000 + b'"}',
    "objects in a string": b'{}{"a":"' + b"}{" * 400_000 + b'"}',
    "blanks around a record": b'{"Records":[' + b" " * 800_000 + b"{}]}",
    "line breaks within a record": b'{"Records":[{"a":' + b"\n" * 800_000 + b"1}]}",
    "commas": b'{"Records":[' + b"{}," * 300_000 + b"{}]}",
    "halves of characters": b'{"Records":[{"a":"' + b"\\ud800" * 130_000 + b'"}]}',
    "open quotes": b"a,b\n" + b'"x,' * 270_000,
    "doubled quotes": b"a,b\n" + b'""",' * 200_000,
    "a header of quotes": b'"a,' * 270_000 + b"\n1,2\n",
    "a header of doubled quotes": b',"""' * 200_000 + b"\n1,2\n",
    "comments": b"#Version: 1\n" + b"#\n" * 400_000,
    "flow log words": b"srcaddr dstaddr " * 50_000 + b"\n",
    "blank lines": b"\n" * 800_000,
}


# Why content is left alone, None where it is not.
REFUSED = {None, MALFORMED, TOO_LARGE, OPEN_QUOTE}


DECLARED = [
    Declaration("*", "csv", header=True),
    Declaration("*", "csv", header=False, backslash=True),
    *(Declaration("*", name) for name in ("undelimited_json", "cloudtrail", "cloudfront", "text")),
]


@pytest.mark.parametrize("name", [".json", ".csv", "_vpcflowlogs_x.log"])
@pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS)
def test_no_content_makes_the_work_grow_with_the_square_of_its_size(trap: bytes, name: str) -> None:
    """At a microsecond a byte a square would take days: the time-out of the test is the bound."""
    for declared in (None, *DECLARED):
        for lines in (False, True):
            reason = framed_or_refused(trap, name, declared, lines=lines)
            assert reason in {*REFUSED, *BY_SETTINGS}


def framed_or_refused(
    content: bytes, name: str, declared: Declaration | None, *, lines: bool
) -> str | None:
    """None for content that is framed, and so given back; else the reason why not."""
    try:
        found = detect(content, name, complete=True, declaration=declared)
        if found is None:
            return None
        framer = framer_for(found.signature(Compression.NONE), lines=lines)
        framed = framer.frame(content)
    except UnreadableSource as error:
        return error.reason
    assert restore_slice(b"".join(framed.slice), facts_of(framed)) == content
    return None


# Headers.

ROWS = b"id,name\n1,x\n2,y\n"


@pytest.mark.parametrize(
    "stored",
    [
        BOM + ROWS,
        ROWS.replace(b"\n", b"\r\n"),
        BOM + ROWS.replace(b"\n", b"\r\n"),
        BOM + ROWS.rstrip(),
        BOM + b"id,name",
        BOM + b"id,name\r\n",
        gzip.compress(BOM + ROWS, mtime=0),
    ],
)
def test_a_header_with_a_byte_order_mark_or_another_line_end_names_the_same_columns(
    stored: bytes,
) -> None:
    plain = gzip.decompress(stored) if stored[:1] == b"\x1f" else stored
    rows = plain.removeprefix(BOM).partition(b"\n")[2]
    split = [line.removesuffix(b"\r").decode() for line in rows.split(b"\n") if line]
    records = Counter(("id,name", repr(line.split(",")).encode()) for line in split)
    suffix = ".csv.gz" if plain is not stored else ".csv"
    beside = of(suffix, b"id,name\n9,beside\n")
    world = Sources([beside, Made(suffix, plain, stored, records), beside, beside])
    world.check_everything()
    # Those with other line ends share an output of their own.
    assert len(world.outputs) == (2 if b"\r\n" in plain else 1)
    for body in world.outputs.values():
        content = gzip.decompress(body) if body[:1] == b"\x1f" else body
        assert content.count(b"id,name") == 1
        assert BOM not in content


def test_a_source_with_two_byte_order_marks_is_left_alone_for_readers_would_drop_both() -> None:
    assert quarantined(".csv", BOM + BOM + ROWS) is UNKNOWN
    assert quarantined(".log", BOM + BOM + b"2026-01-02T03:04:05Z started\n") is UNKNOWN


def test_a_header_of_more_than_a_mebibyte_is_left_alone() -> None:
    long = b"name," * 210_000 + b"last\n1,2\n"
    assert quarantined(".csv", long) is MALFORMED
    shorter = b"name," * 200_000 + b"last\n" + b"1," * 200_000 + b"2\n"
    compacted(".csv", shorter)


def test_a_quote_that_stays_open_does_not_swallow_the_records_of_the_next_source() -> None:
    assert quarantined(".csv", b'id,name\n1,"open\n') is OPEN_QUOTE


# Blanks and edits that would fill a manifest.


@pytest.mark.parametrize(
    "source",
    [
        b" " * 70_000 + b'{"Records":[{"a":1}]}',
        b'{"Records":[{"a":1}]}' + b"\n" * 70_000,
        b'{"Records":[' + b" " * 70_000 + b"]}",
        b" " * 70_000,
    ],
)
def test_a_document_in_a_sea_of_blanks_is_left_alone(source: bytes) -> None:
    assert quarantined(TRAIL, source, format="cloudtrail") is MALFORMED


def test_objects_in_a_sea_of_blanks_are_left_alone() -> None:
    assert quarantined(".json", b"{}{}" + b"\n" * 70_000) is MALFORMED


def test_more_edits_than_are_kept_for_one_source_leave_it_alone() -> None:
    undelimited = b"{}{}\n" + b"{}" * (MOST_EDITS + 1)
    assert quarantined(".json", undelimited) is TOO_LARGE
    spaced = b'{"Records":[' + b"{} ," * (MOST_EDITS + 1) + b"{}]}"
    assert quarantined(TRAIL, spaced, formats=ON_LINES) is TOO_LARGE
    compacted(TRAIL, spaced)


def test_sources_whose_edits_do_not_fit_one_manifest_become_several_outputs() -> None:
    costly = b'{"a":1}{"a":2}\n' * 30
    sources = [of(".json", costly) for _ in range(5)]
    sources[2:2] = [of(".json", b'{"b":1}{"b":2}'), of(".log", LOG)]
    world = Sources(sources, limits=WorkerLimits(kept_bytes=5_000))
    world.check_everything()
    assert len(world.outputs) == 1 + 5


@pytest.mark.parametrize("formats", [[], ON_LINES])
def test_empty_documents_whose_blanks_do_not_fit_one_manifest_leave_documents_valid(
    formats: list[dict],
) -> None:
    blanks = [b" " * n + b'{"Records":[]}' for n in (600, 610, 620)]
    full = [b" " * n + b'{"Records":[{"n":%d}]}' % n for n in (630, 10, 640)]
    sources = [of(TRAIL, one) for one in (*blanks, *full)]
    world = Sources(sources, formats=formats, limits=WorkerLimits(kept_bytes=1_000))
    world.check_everything()
    for body in world.outputs.values():
        assert all(json.loads(line) for line in body.splitlines())


def test_headers_that_all_differ_are_not_remembered_whole() -> None:
    header = b"".join(b"n%da," % n for n in range(2_000))
    row = b"1," * 2_000 + b"2\n"
    sources = [of(".csv", header + b"n%d\n" % n + row) for n in range(40)]
    world = Sources([*sources, of(".csv", header + b"n7\n" + row)])
    world.check_everything()
    assert len(world.outputs) == 40
