"""Whether a source ends within a quoted field, by a reader of one byte after the other."""

import random

import pytest

from compactor.formats.delimited import DELIMITERS, QuoteScan, ends_within_quotes

_PIECES = (b"a", b'"', b'"', b",", b";", b"\n", b"\r\n", b"\\", b" ", b'""', b"xyz")


def _is_open(content: bytes, delimiter: bytes, *, backslash: bool) -> bool:
    state, at = "start", 0
    while at < len(content):
        one, following = content[at : at + 1], content[at + 1 : at + 2]
        if state == "quoted":
            if (backslash and one == b"\\") or one == following == b'"':
                at += 1
            elif one == b'"':
                state = "field"
        elif one in {delimiter, b"\n", b"\r"}:
            state = "start"
        else:
            state = "quoted" if one == b'"' and state == "start" else "field"
        at += 1
    return state == "quoted"


def _drawn(number: int) -> bytes:
    drawn = random.Random(number)
    return b"".join(drawn.choices(_PIECES, k=drawn.randrange(1, 16)))


def _streamed(content: bytes, delimiter: bytes, seed: int) -> bool:
    drawn = random.Random(seed)
    scan, at = QuoteScan(delimiter), 0
    while at < len(content):
        step = drawn.randrange(1, 5)
        scan.feed(content[at : at + step])
        at += step
    return scan.ends_inside()


def test_a_quote_that_one_reader_leaves_open_is_found_whole_and_in_chunks() -> None:
    for number in range(6_000):
        delimiter = DELIMITERS[number % 2]
        content = _drawn(number)
        readers = [_is_open(content, delimiter, backslash=one) for one in (False, True)]
        if b" " in content:
            # Blanks before a quote: some readers skip them, which can only find more.
            if any(readers):
                assert ends_within_quotes(content, delimiter), content
        else:
            assert ends_within_quotes(content, delimiter) is any(readers), content
        whole = ends_within_quotes(content, delimiter)
        assert _streamed(content, delimiter, number) is whole, content


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        (b'1,5" disk\n2,"cut off here', b","),
        (b'1;5" disk\n2;"cut off here', b";"),
        (b'1\t5" disk\n2\t"cut off here', b"\t"),
        (b'"cut off in the first field', b","),
        (b'1,"a\\"', b","),
        (b'1,"a""', b","),
        (b'1, "cut off behind a blank\n', b","),
    ],
)
def test_an_open_quote_is_found_whatever_their_number_and_place(
    content: bytes, delimiter: bytes
) -> None:
    assert ends_within_quotes(content, delimiter)
    assert _streamed(content, delimiter, 1)
    assert ends_within_quotes(content, None) is (b', "' not in content)


@pytest.mark.parametrize(
    "content",
    [
        b'1,5" disk\n2,6" disk\n3,7" disk\n',
        b'1,"two\nlines, and ""quotes"""\n',
        b'"a\\\\","b"\n',
        b'{"a":"b"}\n',
        b'10.0.0.1 - - "GET /a,b HTTP/1.1" 200 "-"\n',
    ],
)
def test_closed_quotes_are_no_fault(content: bytes) -> None:
    assert not ends_within_quotes(content, b",")
    assert not _streamed(content, b",", 2)
    assert not ends_within_quotes(content, None)


def test_text_without_columns_has_no_open_fields() -> None:
    assert not ends_within_quotes(b'one\nand, he said,"two\nthree, four, five\n', None)
    assert not ends_within_quotes(b'he wrote, "and then\n', None)


def test_a_field_of_many_chunks_stays_open() -> None:
    scan = QuoteScan(b",")
    scan.feed(b'a,b\n1,"')
    for _ in range(20):
        scan.feed(b"line\n" * 10_000)
    assert scan.ends_inside()
