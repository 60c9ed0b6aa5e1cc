from __future__ import annotations

import gzip
import zlib
from collections import Counter

import pytest
import zstandard

from scripts.records import records


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
def test_json_records_that_differ_are_told_apart(one, other):
    assert found("a.json", one) != found("a.json", other)


def test_the_records_of_cloudtrail_documents_are_found_inside_them():
    one = found("x.json", b'{"Records":[{"a":1},{"b":2}]}')
    assert one == found("x.json", b'{"Records":[{"b":2}, {"a":1}]}')
    assert one == found("x.json", b'{"b":2}\n{"a":1}\n')
    assert not found("x.json", b'{"Records":[]}')


def test_a_broken_line_among_json_lines_is_a_record_of_its_own():
    assert found("a.json", b'{"a":1}\n{"b":\n{"c":3}\n').total() == 3


def test_header_lines_are_no_records():
    assert found("a.csv", b"id,name\n1,x\n") == Counter(["1,x"])
    assert found("a.csv.gz", gzip.compress(b"id,name\r\n1,x", mtime=0)) == Counter(["1,x"])
    flow = b"version account-id interface-id srcaddr\n2 1 eni-1 10.0.0.1\n"
    assert found("a.log", flow) == Counter(["2 1 eni-1 10.0.0.1"])
    assert found("a", b"#Version: 1.0\n#Fields: date\n2026-01-01\n") == Counter(["2026-01-01"])
    assert found("a.log", b"only words of a text\n") == Counter(["only words of a text"])


def test_bytes_that_are_no_utf8_are_told_apart():
    assert found("a.log", b"\xff\n") != found("a.log", b"\xfe\n")


@pytest.mark.parametrize("content", [b"\x1f\x8bnot gzip", gzip.compress(b"cut off", mtime=0)[:-4]])
def test_what_does_not_decompress_is_an_error(content):
    with pytest.raises((OSError, EOFError, zlib.error)):
        found("a.gz", content)
