"""What is told by one search is what a closer look tells."""

from __future__ import annotations

import random
import uuid

import pytest

from compactor.errors import UnreadableSource
from compactor.formats import characters, first_record, json_text
from compactor.formats.first_record import FirstRecord
from compactor.formats.first_record import first_record as told
from compactor.formats.usual_rows import usual_evidence
from compactor.model import Format

_FIELDS = (
    lambda n: f"{n.randint(0, 99)}",
    lambda n: f"{n.random():.1f}",
    lambda n: f"web-{n.randint(0, 9)}",
    lambda n: f"2026-01-{n.randint(1, 28):02}T00:00:00Z",
    lambda n: f"10.0.0.{n.randint(1, 9)}",
    lambda n: f"{n.getrandbits(64):016x}",
    lambda n: f"{n.getrandbits(128):032X}",
    lambda n: str(uuid.UUID(int=n.getrandbits(128))),
    lambda n: n.choice(("/", "/a/1", "/index.html?a=b")),
    lambda n: n.choice(("GET", "POST", "")),
    lambda n: n.choice(("WARN", "OK", "ok")),
    lambda n: n.choice(('"a ""b"""', '"1,2"', '""', "a", '"7"')),
)
_ODD = (
    *("", "a b", "10.0.0.1", "x" * 70, "N/A", '"q"', "GET", "\xe9", "1,2", "-", "true", "mon"),
    *('"a\nb"', '"a"b', 'a"b', '"', '"a', "/\xa0", "/a b", "1.2.3", "deadbeefdeadbeef", "a" * 16),
    *("abcdefab-abcd-abcd-abcd-abcdefabcdef", " 1", "1 ", "/é;|\t", "0" * 15),
)
_JSON = (
    b'{"a":1}',
    b"{",
    b"}",
    b'"a"',
    b":",
    b"1",
    b",",
    b"\n",
    b"\r\n",
    b" ",
    b"[",
    b"{}",
    b"NaN",
)


def _table(chance: random.Random) -> bytes:
    columns = [chance.choice(_FIELDS) for _ in range(chance.randint(1, 5))]
    end = chance.choice(("\n", "\r\n"))
    odd = chance.choice((0, 0.01, 0.1))
    rows = [
        ",".join(
            chance.choice(_ODD) if chance.random() < odd else column(chance) for column in columns
        )
        for _ in range(chance.choice((0, 1, 3, 8, 9, 40)))
    ]
    names = ",".join(f"name_{n}" for n in range(len(columns)))
    return (end.join((names, *rows)) + chance.choice((end, ""))).encode("latin-1")


def _told(table: bytes, *, complete: bool) -> FirstRecord | str:
    try:
        return told(table, Format.CSV, "auto", complete=complete)
    except UnreadableSource as error:
        return str(error)


def test_one_search_finds_the_evidence_that_fields_show(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    tables = [(_table(chance), chance.random() < 0.8) for _ in range(2_500)]
    quick = [_told(table, complete=complete) for table, complete in tables]
    answers = 0
    search = usual_evidence

    def counted(head: bytes, start: int, delimiter: bytes, width: int, *, complete: bool) -> int:
        nonlocal answers
        answers += bool(search(head, start, delimiter, width, complete=complete))
        return 0

    monkeypatch.setattr(first_record, "usual_evidence", counted)
    assert quick == [_told(table, complete=complete) for table, complete in tables]
    assert answers > 500


def test_a_table_with_digests_words_and_quoted_text_is_told_by_one_search() -> None:
    names = b"id,method,address,path,text\n"
    row = b'00ff3a5be2c87d91,GET,10.0.0.1,/a?b=c,"a, ""b"""\n'
    assert usual_evidence(names + row * 9, len(names) - 1, b",", 5, complete=True) == 0b101


@pytest.mark.parametrize("start", [0, 1_013, -512, -11])
def test_control_characters_are_found_at_the_start_and_at_the_end(start: int) -> None:
    head = bytearray(b"a line\n" * 600)
    start %= len(head)
    head[start : start + 11] = b"\x01" * 11
    with pytest.raises(UnreadableSource, match="11 of"):
        characters.refuse_binary(bytes(head), keep_nuls=False)


def test_lines_that_are_one_array_are_lines_one_by_one() -> None:
    chance = random.Random(1)
    texts = [
        b"".join(chance.choice(_JSON) for _ in range(chance.randint(1, 7))) for _ in range(40_000)
    ]
    found = [text for text in texts if json_text._are_plain_lines(text)]
    assert len({text for text in found if b"\n" in text.strip()}) > 5
    assert all(json_text._are_any_lines(text) for text in found)


@pytest.mark.parametrize("text", [b'{"a":1}{"b":2}\n', b'{"a":1\n"b":2}', b'{"a":\n1}\n{"b":2}'])
def test_no_array_hides_that_a_line_is_no_object(text: bytes) -> None:
    assert not json_text.are_json_lines(text)
