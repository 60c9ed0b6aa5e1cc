"""Every kind of the zoo goes through the product, and its own reader counts afterwards."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from tests.zoo import families
from tests.zoo.__main__ import main
from tests.zoo.encodings import ENCODINGS
from tests.zoo.families import KINDS
from tests.zoo.fuzz import fuzz, schedule, shrunk
from tests.zoo.kinds import JOINED
from tests.zoo.readers import (
    blob,
    document,
    json_lines,
    lines,
    records_document,
    table,
)
from tests.zoo.trial import Source, judged, sources_of, tried

# One kind of each format is stored in every way.
_STORED = ("nginx access", "JSON lines", "Undelimited JSON", "CloudTrail", "CSV with a header",
           "VPC flow", "CloudFront v1", "XML", "Random bytes, 48 of them", "TSV with a header",
           "CSV of one equal row", "syslog, RFC 5424", "Empty objects")  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_its_reader_sees_every_record_and_no_other(name):
    assert judged(KINDS[name]).faults == []
    assert judged(KINDS[name], "gzip", seed=1).faults == []


@pytest.mark.parametrize("encoding", [name for name in ENCODINGS if name not in {"plain", "gzip"}])
@pytest.mark.parametrize("name", _STORED)
def test_its_reader_sees_them_however_they_are_stored(name, encoding):
    assert judged(KINDS[name], encoding).faults == []


def test_all_kinds_in_one_partition_do_not_touch_each_other():
    sources = [
        replace(source, name=f"{number:03}-{source.name}")
        for number, kind in enumerate(KINDS.values())
        for source in sources_of(kind, seed=2)
    ]
    assert tried(sources).faults == []


def test_sources_mixed_and_damaged_at_random_are_right():
    out = io.StringIO()
    status = fuzz(seconds=3_600, seed=0, schedules=300, out=out)
    assert status == 0, out.getvalue()


def test_each_kind_has_a_name_of_its_own_and_the_page_that_documents_it():
    names = [kind.name for family in families.FAMILIES for kind in family.KINDS]
    assert sorted(names) == sorted(KINDS)
    assert not [kind for kind in KINDS.values() if not re.fullmatch(r"https?://\S+\.\S+", kind.url)]
    joined = [kind for kind in KINDS.values() if JOINED in kind.expected]
    assert len(joined) >= 260
    assert len(KINDS) - len(joined) >= 60


def test_the_command_prints_what_becomes_of_a_kind(capsys):
    assert main(["CSV with a header, CRLF"]) == 0
    printed = capsys.readouterr().out
    assert "CSV with a header, CRLF: joined; formats: {'format': 'csv', 'header': True}" in printed
    assert printed.endswith("1 kinds, 0 faults\n")


# What the zoo must notice.


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
    assert sum((reader(body) for body in sources), start=type(reader(b""))()) != reader(joined)


def test_what_fails_is_made_small_and_fails_still():
    plain = b"".join(b"line %d\n" % n for n in range(20))
    sources = [Source(f"{n}.log", plain, blob, "a kind") for n in range(4)]
    outcome = tried(sources)
    assert outcome.faults, "text is joined, and a blob may not be"
    assert outcome.joined == {source.name for source in sources}
    assert sum(len(source.plain) for source in shrunk(sources)) < len(plain)


def test_schedules_are_the_same_each_time():
    assert schedule(7) == schedule(7)
