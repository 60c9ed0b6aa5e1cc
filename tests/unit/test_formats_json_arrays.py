"""JSON arrays of objects: spliced, proven, given back; any other array left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.errors import UnreadableSource
from compactor.formats import detect, framer_for
from compactor.formats.framing import Framed, Framer
from compactor.log.manifest import restore_slice
from compactor.model import Compression, Format, Signature
from compactor_cli.commands import verify
from tests.support.framing import facts_of
from tests.support.world import World
from tests.unit.test_formats_cloudtrail import layouts, records

BOM = b"\xef\xbb\xbf"


def framer(output: str = "array") -> Framer:
    signature = Signature(Format.JSON_ARRAY, Compression.NONE)
    return framer_for(signature, lines=output == "lines")


def join(target: Framer, sources: list[bytes]) -> tuple[bytes, list[Framed]]:
    output, made = target.opening(), []
    for content in sources:
        framed = target.frame(content)
        piece = b"".join(framed.slice)
        assert restore_slice(piece, facts_of(framed)) == content
        output += framed.separator + piece
        made.append(framed)
    return output + target.closing(), made


def placed(content: bytes) -> Framed:
    found = detect(content, "a.json", complete=True)
    assert found is not None
    return framer_for(found.signature(Compression.NONE)).frame(content)


def seen(output: bytes, how: str) -> list[object]:
    """The records as a reader of such an output takes them."""
    if how == "lines":
        return [json.loads(line) for line in output.split(b"\n")[:-1]]
    found: list[object] = json.loads(output)
    return found


@pytest.mark.parametrize("how", ["array", "lines"])
@given(sources=st.lists(st.tuples(records, layouts), min_size=1, max_size=4))
def test_any_arrays_become_one_and_each_is_given_back_byte_for_byte(how, sources):
    written = [json.dumps(found, **layout).encode() for found, layout in sources]
    output, made = join(framer(how), written)
    expected = [record for found, _ in sources for record in found]
    assert seen(output, how) == expected
    assert [one.records for one in made] == [len(found) for found, _ in sources]


@pytest.mark.parametrize("how", ["array", "lines"])
def test_empty_arrays_and_a_byte_order_mark_add_nothing(how):
    output, made = join(framer(how), [b"[]", BOM + b'[{"a":1}]\n', b"[ \n]\n", b'[{"a":2}]'])
    assert seen(output, how) == [{"a": 1}, {"a": 2}]
    assert [one.records for one in made] == [0, 1, 0, 1]
    assert seen(join(framer(how), [b"[]", b"[]\n"])[0], how) == []


@pytest.mark.parametrize(
    "content",
    [
        b"[1,2]",
        b'["a"]',
        b"[[1,2],[3]]",
        b"[null]",
        b'[{"prefix":"s3://bucket/"},"a.jpg"]',
        b'[{"a":1}] trailing',
        b'[{"a":1}]\n[{"a":2}]\n',
        b'[{"a":1}][{"a":2}]',
        b'[{"a":1},]',
        b'[{"a":1}',
        b'[{"a":"',
        b'[{"@id":"_:b0"}]',
        b'[{"@context":"https://schema.org"}]',
    ],
)
def test_any_other_array_is_left_alone(content):
    with pytest.raises(UnreadableSource, match=r"unknown_format|open_end"):
        placed(content)


@pytest.mark.parametrize("line", [b"[warn] a", b"[2026-01-31 12:00:00] a", b"[pid 12] {b}"])
def test_a_bracket_before_a_line_of_text_is_no_array(line):
    try:
        found = detect(line + b"\n" + line + b"\n", "a.log", complete=True)
    except UnreadableSource:
        return
    assert found is not None
    assert found.format is Format.TEXT


@pytest.mark.parametrize("how", ["array", "lines"])
def test_a_run_joins_arrays_and_restores_them(how):
    world = World(format="json_array_lines") if how == "lines" else World()
    sources = {
        "a.json": b'[{"n":1},\n {"n":2}]\n',
        "b.json": json.dumps([{"n": 3, "in": [{"x": [1, "],["]}]}], indent=2).encode(),
        "c.json": b"[]",
        "d.json": b"[7]",
    }
    for name, body in sources.items():
        world.put(name, body)
    world.run()
    (output,) = world.store.contents("lake", "compacted/").values()
    expected = [{"n": 1}, {"n": 2}, {"n": 3, "in": [{"x": [1, "],["]}]}]
    assert seen(output, how) == expected
    checked = verify.check(world.settings, world.store, sources=True, deep=True)
    assert (checked.findings, checked.deep) == ([], [])
