"""Every kind of the zoo goes through the product, and its own reader counts afterwards."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from tests.zoo.encodings import ENCODINGS
from tests.zoo.engines import difference
from tests.zoo.families import KINDS
from tests.zoo.fuzz import fuzz, schedule, shrunk
from tests.zoo.kinds import Verdict
from tests.zoo.readers import (
    blob,
    document,
    json_document,
    json_lines,
    json_stream,
    lines,
    records_document,
    table,
)
from tests.zoo.table import DOCUMENT
from tests.zoo.table import table as table_of
from tests.zoo.trial import Outcome, Source, judged, sources_of, tried

_OTHER_ENCODINGS = [name for name in ENCODINGS if name not in ("plain", "gzip")]
# One kind of each frame goes through every way to store it.
_STORED = ("nginx access", "JSON lines", "Undelimited JSON", "CloudTrail", "CSV with a header",
           "VPC flow", "CloudFront v1", "XML", "Random bytes, 48 of them", "TSV with a header",
           "CSV of one equal row", "syslog, RFC 5424", "Empty objects")  # fmt: skip

_DOCUMENTS = [
    name
    for name, one in KINDS.items()
    if one.verdict is Verdict.LEFT and ".families.document" in one.write.__module__
]


@pytest.mark.parametrize("name", KINDS)
def test_its_reader_sees_every_record_and_no_other(name):
    assert judged(KINDS[name]).faults == []


@pytest.mark.parametrize("name", KINDS)
def test_its_reader_sees_them_in_gzip_too(name):
    assert judged(KINDS[name], "gzip", seed=1).faults == []


@pytest.mark.parametrize("ending", [".txt", ""])
@pytest.mark.parametrize("name", _DOCUMENTS)
def test_documents_stay_alone_whatever_they_are_called(name, ending):
    renamed = replace(KINDS[name], ending=ending)
    assert judged(renamed).faults == []
    assert judged(renamed, seed=3).faults == []


@pytest.mark.parametrize("encoding", _OTHER_ENCODINGS)
@pytest.mark.parametrize("name", _STORED)
def test_its_reader_sees_them_however_they_are_stored(name, encoding):
    assert judged(KINDS[name], encoding).faults == []


def test_all_kinds_in_one_partition_do_not_touch_each_other():
    sources = [
        Source(f"{number:03}-{one.name}", one.plain, one.reader, one.kind, one.encoding, one.loose)
        for number, kind in enumerate(KINDS.values())
        if not kind.given
        for one in sources_of(kind, seed=2)
    ]
    assert tried(sources).faults == []


def test_the_zoo_has_the_kinds_that_the_product_is_for_and_those_it_must_not_touch():
    verdicts = [kind.verdict for kind in KINDS.values()]
    assert len(verdicts) >= 580
    assert verdicts.count(Verdict.JOINED) >= 210
    assert verdicts.count(Verdict.LEFT) >= 240


def test_the_document_says_what_becomes_of_each_kind_today():
    made = table_of({kind.name: judged(kind) for kind in KINDS.values()}, KINDS)
    assert DOCUMENT.read_text(encoding="utf-8") == made, "make zoo ARGS='--write docs/zoo.md'"


def test_the_document_has_a_line_for_each_kind_and_marks_what_is_wrong():
    kinds = {name: KINDS[name] for name in ("zap", "Go panic")}
    right = {name: Outcome(joined={"a", "b"}) for name in kinds}
    wrong = {**right, "Go panic": Outcome(left={"a": ("unknown_format", "")}, faults=["lost"])}
    assert "2 right, 0 wrong" in table_of(right, kinds)
    made = table_of(wrong, kinds)
    assert "1 right, 1 wrong" in made
    assert f"- [Go panic]({KINDS['Go panic'].url}) **wrong**" in made.splitlines()
    assert f"- [zap]({KINDS['zap'].url})" in made.splitlines()
    assert 'Set format: "text", if their lines are records.' in made


def test_documents_and_logs_that_must_be_distinguished_begin_differently():
    logs = [kind for kind in KINDS.values() if kind.write.__module__.endswith("plain_logs")]
    assert len([kind for kind in logs if kind.verdict is Verdict.JOINED]) >= 40
    variants = [kind for name, kind in KINDS.items() if name.endswith(", variants")]
    for kind in (*logs, *variants):
        if kind.verdict is not Verdict.EITHER:
            assert len({one[:80] for one in kind.sources()}) > 1, kind.name
    assert len(_DOCUMENTS) >= 100


def test_every_kind_says_where_its_shape_is_documented():
    assert all(
        kind.page and kind.url.startswith(("https://", "http://")) for kind in KINDS.values()
    )
    assert not [kind.name for kind in KINDS.values() if "?utm" in kind.url]


def test_sources_are_the_same_each_time_and_no_reader_sees_anything_in_nothing():
    for kind in KINDS.values():
        assert kind.sources(3) == kind.sources(3)
        assert kind.reader(b"") == document(b"")


def test_a_few_seconds_of_fuzzing_find_nothing():
    out = io.StringIO()
    status = fuzz(60, seed=1, schedules=300, out=out)
    assert status == 0, out.getvalue()
    assert out.getvalue().endswith(", 0 others\n")


# The zoo itself: what it must notice.


def source(name, plain, reader):
    return Source(name, plain, reader, "a kind")


@pytest.mark.parametrize(
    ("reader", "sources", "joined"),
    [
        (lines, [b"a\n", b"b"], b"a\n"),
        (lines, [b"a\n", b"b"], b"ab"),
        (lines, [b"a\n", b"b"], b"a\nb\nb\n"),
        (table(), [b"a,b\n1,2\n", b"a,b\n3,4\n"], b"a,b\n1,2\na,b\n3,4\n"),
        (table(header=False), [b"x,y\n1,2\n", b"x,y\n3,4\n"], b"x,y\n1,2\n3,4\n"),
        (table(), [b'a,b\n1,"2', b"a,b\n3,4\n"], b'a,b\n1,"2\n3,4\n'),
        (json_lines, [b'{"a":1}', b'{"a":2}'], b'{"a":1}{"a":2}'),
        (records_document, [b'{"Records":[1]}', b'{"Records":[2]}'], b'{"Records":[1]}'),
        (document, [b"<a/>", b"<b/>"], b"<a/>\n<b/>\n"),
        (blob, [b"\x01", b"\x02"], b"\x01\n\x02\n"),
    ],
)
def test_a_reader_distinguishes_a_wrong_output_from_its_sources(reader, sources, joined):
    assert sum((reader(one) for one in sources), start=type(reader(b""))()) != reader(joined)


@pytest.mark.parametrize(
    ("reader", "sources", "right", "wrong"),
    [
        (table(), [b"a,b\r\n1,2\r\n", b"a,b\r\n3,4\r\n"], b"a,b\r\n1,2\r\n3,4\r\n",
         b"a,b\n1,2\r\n3,4\r\n"),
        (table(header=False), [b"1,2\n", b"3,4"], b"1,2\n3,4\n", b"1,23,4\n"),
        (table("\t", quotes=False), [b'a\t"b\n1\t"2\n'] * 2, b'a\t"b\n1\t"2\n1\t"2\n',
         b'a\t"b\n1\t"2\n'),
        (json_lines, [b'{"a":1}\r\n', b'{"a":2}'], b'{"a":1}\r\n{"a":2}\n',
         b'{"a":1}\r\n{"a":2'),
        (json_stream, [b'{"a":1}{"a":2}', b"{}"], b'{"a":1}\n{"a":2}\n{}\n',
         b'{"a":1}{"a":2}\n{}\n'),
        (json_document, [b"[1,2]", b"[3]"], b"[1,2,3]", b"[1,2][3]"),
        (records_document, [b'{"Records":[1]}', b'{"Records":[2]}'], b'{"Records":[1,2]}',
         b'{"Records":[1]}'),
    ],
)  # fmt: skip
def test_duckdb_distinguishes_a_wrong_output_from_its_sources(reader, sources, right, wrong):
    assert not difference(right, sources, reader)
    assert difference(wrong, sources, reader)


def test_what_fails_is_made_small_and_fails_still():
    plain = b"".join(b"line %d\n" % n for n in range(20))
    sources = [source(f"{n}.log", plain, blob) for n in range(4)]
    outcome = tried(sources, format="text")
    assert outcome.faults, "text is joined where the caller says so, and a blob may not be"
    assert outcome.joined == {one.name for one in sources}


def test_schedules_are_the_same_each_time_and_change_sources():
    assert schedule(7) == schedule(7)
    kept = {plain for kind in KINDS.values() for plain in kind.sources()}
    changed = [one for seed in range(50) for one in schedule(seed) if one.plain not in kept]
    assert changed


def test_a_schedule_that_holds_is_not_made_smaller():
    sources = schedule(7)
    assert shrunk(sources, type(tried([]))()) == sources
