from __future__ import annotations

import gzip
import zlib
from collections import Counter

import pytest
import zstandard

from tests.support.foreign_records import Reader, plain_text, records
from tests.support.misread import MISREAD
from tests.support.naive_formats import without_rules
from tests.support.world import World


def found(key: str, content: bytes) -> Counter[str]:
    return Counter(records(key, content))


@pytest.mark.parametrize(
    "encode",
    [
        bytes,
        gzip.compress,
        zstandard.compress,
        lambda b: gzip.compress(b[:4], mtime=0) + gzip.compress(b[4:], mtime=0),
    ],
)
def test_the_same_records_are_found_however_they_are_compressed(encode):
    assert found("a.log", encode(b"one\ntwo\n")) == Counter(["one", "two"])


def test_json_objects_are_equal_with_and_without_anything_between_them():
    joined = found("a", b'{"a":1}{"b": [1, 2]}')
    assert joined == found("a", b'{"a": 1}\n{"b":[1,2]}\n')
    assert joined.total() == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1.10}', b'{"a":1.1}'),
        (b'{"a":1}', b'{"a":"1"}'),
        (b'{"a":1,"b":2}', b'{"b":2,"a":1}'),
        (b'{"a":1,"a":1}', b'{"a":1}'),
        (b"{}", b"[]"),
        (b'{"a":1}', b'[["a",1]]'),
        (b'{"a":"\\u00e9"}', b'{"a":"e"}'),
    ],
)
def test_json_records_that_differ_are_distinguished(one, other):
    assert found("a.json", one) != found("a.json", other)


def test_the_records_of_cloudtrail_documents_are_found_inside_them():
    one = found("x.json", b'{"Records":[{"a":1},{"b":2}]}')
    assert one == found("x.json", b'{"Records":[{"b":2}, {"a":1}]}')
    assert one == found("x.json", b'{"b":2}\n{"a":1}\n')
    assert not found("x.json", b'{"Records":[]}')


def test_a_broken_line_among_json_lines_is_a_record_of_its_own():
    assert found("a.json", b'{"a":1}\n{"b":\n{"c":3}\n').total() == 3


def test_header_lines_are_no_records():
    flow = b"version account-id interface-id srcaddr\n2 1 eni-1 10.0.0.1\n"
    assert found("a.log", flow) == Counter(["2 1 eni-1 10.0.0.1"])
    assert found("a", b"#Version: 1.0\n#Fields: date\n2026-01-01\n").total() == 1
    assert found("a.log", b"only words of a text\n") == Counter(["only words of a text"])


def test_the_fields_of_a_line_are_part_of_the_record():
    one = found("a", b"#Version: 1.0\n#Fields: date\n2026-01-01\n")
    assert one != found("a", b"#Version: 1.0\n#Fields: time\n2026-01-01\n")


def reader(*texts: str, key: str = "a.csv") -> Reader:
    return Reader([(key, text) for text in texts])


def test_a_first_row_is_a_header_only_where_all_sources_show_it():
    certain = reader("id,name\n1,x\n", "id,name\r\n2,y", "id,name\n")
    assert certain.header == ["id", "name"]
    assert list(certain.source("id,name\r\n1,x")) == ['["1", "x"]']
    assert reader("10.0.0.1,GET,/health\n10.0.0.1,GET,/a\n").header is None
    assert reader("web-1,OK,healthy\n", "web-1,OK,healthy\n").header is None
    assert reader("id,name\n1,x\n", "id,other\n1,x\n").header is None
    assert reader("id,name\n1,x\nid,name\n", "id,name\n2,y\n").header is None


# Nothing is lost or glued where these are joined: what was broken before is as broken as before.
UNCOUNTED = {"JSON that is cut off", "a CR without its LF", "half a character"}


@pytest.mark.parametrize("name", sorted(MISREAD.keys() - UNCOUNTED))
def test_the_proof_would_notice_each_fault_that_was_made(name):
    world = World()
    for key, content in MISREAD[name]:
        world.put(key, content)
    with without_rules():
        world.run()
    texts = [(key, plain_text(body)) for key, body in world.store.contents("source", "").items()]
    (output,) = world.store.contents("lake", "compacted/").values()
    second = Reader(texts)
    before = Counter(record for _, text in texts for record in second.source(text))
    after = Counter(second.output(plain_text(output)))
    assert before != after or second.doubt


def test_the_proof_finds_nothing_in_what_is_joined_rightly():
    texts = [
        ("a.json", '{"a":1}{"a":2}'),
        ("a.json", '{"a": 3}\n'),
    ]
    second = Reader(texts)
    before = Counter(record for _, text in texts for record in second.source(text))
    assert before == Counter(second.output('{"a":1}\n{"a":2}\n{"a": 3}\n'))


def test_bytes_that_are_no_utf8_are_distinguished():
    assert found("a.log", b"\xff\n") != found("a.log", b"\xfe\n")


@pytest.mark.parametrize("content", [b"\x1f\x8bnot gzip", gzip.compress(b"cut off", mtime=0)[:-4]])
def test_what_does_not_decompress_is_an_error(content):
    with pytest.raises((OSError, EOFError, zlib.error)):
        found("a.gz", content)
