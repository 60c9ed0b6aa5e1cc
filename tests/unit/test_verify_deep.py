"""``compactor verify --deep`` names the outputs in which readers do not see their sources."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from compactor.formats.listed import ListFramer
from compactor.verification.originals import JUDGED_BYTES
from compactor_cli.commands import verify
from tests.support.misread import MISREAD
from tests.support.naive_formats import without_rules
from tests.support.world import World


def made(name: str) -> World:
    world = World(second_reading="none")
    for key, content in MISREAD[name].sources:
        world.put(key, content)
    with without_rules(headed=MISREAD[name].headed):
        world.run()
    return world


def test_each_fault_is_a_line_with_counts_keys_and_what_to_do() -> None:
    world = made("one row in each object")
    checked = verify.check(world.settings, world.store, sources=False, deep=True)
    (line,) = checked.findings
    (key,) = world.store.contents("lake", "compacted/")
    assert f"s3://lake/{key}: rows_dropped: 4 records in, 1 out: read as a table" in line
    assert "logs/2026/01/02/1.csv" in line
    assert checked.deep is not None
    assert json.loads(json.dumps(asdict(checked)))["deep"][0]["kind"] == "rows_dropped"


def test_without_deep_such_an_output_is_sound() -> None:
    world = made("one row in each object")
    checked = verify.check(world.settings, world.store, sources=True)
    assert not checked.findings
    assert checked.deep is None


def test_sources_that_are_gone_are_known_by_the_manifest() -> None:
    world = made("an open quote")
    for key in world.store.contents("source", ""):
        world.store.seed("source", key, b"another\n")
    checked = verify.check(world.settings, world.store, sources=False, deep=True)
    assert {one.kind for one in checked.deep or ()} == {"records_glued"}


def test_a_source_that_another_decompressor_reads_otherwise_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(second_reading="none")
    world.put("a.json.gz", b'{"a":1}\n{"a":2}\n', packed=True)
    world.put("b.json.gz", b'{"a":3}\n', packed=True)
    # A decompressor that loses a line, and then agrees with itself.
    with monkeypatch.context() as broken:
        broken.setattr(
            "compactor.outputs.plain_content.decompress_whole", lambda *_, **__: b'{"a":1}\n'
        )
        world.run()
    checked = verify.check(world.settings, world.store, sources=False, deep=True)
    assert {one.kind for one in checked.deep or ()} == {"records_differ"}
    assert "the source holds other records" in checked.findings[0]


def long_list(size: int, number: int) -> bytes:
    """Records of at least so many bytes, other ones for each number."""
    filler = b"x" * 10_000
    each = (b'{"Data":"%d.%d.%b"}' % (number, n, filler) for n in range(size // len(filler) + 1))
    return b",".join(each)


@pytest.mark.parametrize("sizes", [(JUDGED_BYTES + 1, JUDGED_BYTES + 1), (JUDGED_BYTES + 1, 100)])
@pytest.mark.parametrize("last", [b'"MillisBehindLatest":0', b'\n"MillisBehindLatest" : 0\n'])
def test_a_field_after_a_list_that_is_longer_than_the_judged_head_is_no_finding(
    sizes: tuple[int, ...], last: bytes
) -> None:
    world = World(second_reading="none")
    for number, size in enumerate(sizes):
        world.put(f"{number}.json", b'{"Records":[%b],%b}' % (long_list(size, number), last))
    world.run()
    assert len(world.store.contents("lake", "compacted/")) == 1
    checked = verify.check(world.settings, world.store, sources=True, deep=True)
    assert not checked.findings


def test_a_list_longer_than_the_judged_head_whose_last_field_was_lost_is_found() -> None:
    world = World(second_reading="none")
    for number in range(2):
        records = long_list(JUDGED_BYTES, number)
        world.put(f"{number}.json", b'{"Records":[%b],"MillisBehindLatest":0}' % records)
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(ListFramer, "closing", lambda _: b"]}")
        world.run()
    checked = verify.check(world.settings, world.store, sources=True, deep=True)
    assert {one.kind for one in checked.deep or ()} == {"records_differ"}
