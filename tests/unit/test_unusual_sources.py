"""Sources that are large, damaged, archived or change meanwhile: nothing is lost or left over."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest

from compactor.errors import IntegrityError, TransientStoreError
from compactor.limits import WorkerLimits
from compactor.model import QuarantineReason, StoredPart
from compactor.outputs import plain_content as plain
from tests.support.examples import NOW
from tests.support.memory_store import Call
from tests.support.records import Made, lines_of_json
from tests.support.sources import Sources, of

# Sources too large to be held whole.

LIMIT = 64 * 1024
# A line of an access log may hold any bytes.
STAMP = b"10.0.0.1 - - [31/Jan/2026:12:00:00 +0000] "
IN_CHUNKS = {"whole_bytes": 1_000, "chunk_bytes": 10_007, "min_part_bytes": 1}


# Beyond 64 KiB sources are streamed, and outputs are stored in parts of 100 KB.
STREAMING = WorkerLimits(whole_bytes=LIMIT, part_bytes=100_000, block_bytes=10_000)


def large_sources(ending: str = "") -> list[Made]:
    rows = lines_of_json(3_000)
    table = b"id,name\r\n" + b"".join(b'%d,"a\nb"\r\n' % n for n in range(9_000))
    return [
        of(".json" + ending, rows),
        of(".json" + ending, b"\xef\xbb\xbf" + lines_of_json(2_000, seed=1).rstrip()),
        of(".json" + ending, lines_of_json(5, seed=2)),
        of(".csv" + ending, table),
        of(".csv" + ending, b"\xef\xbb\xbf" + table + b"last,one"),
        of(".csv" + ending, b"id,name\r\n7,x\r\n"),
        of(".log" + ending, STAMP + " é one long line ".encode() * 20_000),
        of(".log" + ending, (STAMP + b"\n" * 40) * 2_000),
    ]


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("compression", ["same", "none", "gzip"])
def test_streamed_sources_are_compacted_and_given_back_like_others(
    ending: str, compression: str
) -> None:
    world = Sources(large_sources(ending), IN_CHUNKS, compression=compression, limits=STREAMING)
    world.check_everything()
    assert world.store.count("upload_part") > len(world.outputs)
    assert world.store.unfinished_uploads("lake") == {}


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_streamed_sources_give_the_same_bytes_as_whole_ones(ending: str) -> None:
    whole = Sources(large_sources(ending), {"whole_bytes": 10**9})
    whole.run()
    streamed = Sources(large_sources(ending), IN_CHUNKS, limits=STREAMING)
    with mock.patch.object(plain.PlainContent, "whole", only_if_complete):
        streamed.run()
    assert streamed.outputs == whole.outputs


def only_if_complete(content: plain.PlainContent, limit: int) -> bytes:
    assert content.complete, "a source was held whole that could be streamed"
    return content.head


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0x40]) + content[at + 1 :]


def damaged(name: str, how: str) -> Made:
    sound = of(name, lines_of_json(4_000, seed=9))
    size = len(sound.stored)
    stored = sound.stored[: size * 3 // 4] if how == "cut" else flipped(sound.stored, size - 6)
    return Made(name, sound.plain, stored, Counter(), damaged=True)


@pytest.mark.parametrize("how", ["cut", "flipped"])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("name", [".json.gz", ".json.zst"])
def test_damage_in_the_middle_of_a_streamed_source_leaves_only_that_source_out(
    name: str, place: int, how: str
) -> None:
    others = [of(name, lines_of_json(2_500, seed=1)), of(name, lines_of_json(9, seed=2))]
    sources = [*others[:place], damaged(name, how), *others[place:]]
    world = Sources(sources, IN_CHUNKS, limits=STREAMING)
    world.check_everything()
    assert len(world.outputs) == 1
    assert world.store.unfinished_uploads("lake") == {}
    (commit,) = world.commits()
    (quarantined,) = commit.quarantined
    expected = QuarantineReason.TRUNCATED if how == "cut" else QuarantineReason.CORRUPT
    assert quarantined.reason is expected
    # Its bytes hang on the others alone.
    without = Sources(others, IN_CHUNKS, limits=STREAMING)
    without.run()
    assert list(world.outputs.values()) == list(without.outputs.values())


def test_two_damaged_sources_make_the_group_start_again_twice() -> None:
    sources = [damaged(".json.gz", "cut"), of(".json.gz", lines_of_json(3_000))]
    sources += [damaged(".json.gz", "flipped"), of(".json.gz", lines_of_json(10, seed=3))]
    world = Sources(sources, IN_CHUNKS, limits=STREAMING)
    world.check_everything()
    # The in-memory store reads no further ahead than it is asked to.
    assert world.store.count("read_source") == 1 + 2 + 2
    assert world.store.unfinished_uploads("lake") == {}


def test_a_document_larger_than_it_may_be_is_left_alone() -> None:
    records = [{"n": n} for n in range(20_000)]
    large = json.dumps({"Records": records}).encode()
    name = "_CloudTrail_x.json"
    fine = of(name, b'{"Records":[{"n":1}]}')
    too_large = Made(name, large, large, Counter(), damaged=True)
    given_ = {"limits": STREAMING, "max_document_bytes": LIMIT}
    world = Sources([fine, too_large], IN_CHUNKS, **given_)
    world.check_everything()
    (quarantined,) = (q for one in world.commits() for q in one.quarantined)
    assert quarantined.reason is QuarantineReason.TOO_LARGE
    given_["max_document_bytes"] = len(large)
    allowed = Sources([fine, of(name, large)], IN_CHUNKS, **given_)
    allowed.check_everything()


def test_a_source_that_expands_beyond_reason_is_left_alone() -> None:
    bomb = gzip.compress((STAMP + b"\n") * 1_000_000, mtime=0)
    world = Sources(
        [Made(".log.gz", b"", bomb, Counter(), damaged=True), of(".log.gz", STAMP + b"fine\n")],
        IN_CHUNKS,
        max_expansion=100,
        limits=STREAMING,
    )
    world.check_everything()
    (quarantined,) = (q for one in world.commits() for q in one.quarantined)
    assert quarantined.reason is QuarantineReason.BOMB


# What is given up leaves nothing behind.


def change_at(world: Sources, name: str, key: str, nth: int = 1) -> None:
    """The source is overwritten at the nth request of this name about it."""
    seen = 0

    def hook(call: Call) -> None:
        nonlocal seen
        seen += (call.name, call.key) == (name, key)
        if seen == nth and (call.name, call.key) == (name, key):
            world.store.seed("source", key, b"new\n", last_modified=NOW - 86_400)

    world.store.hooks.before.append(hook)


def test_a_source_that_changed_after_parts_were_stored_leaves_no_upload() -> None:
    sources = [of(".log", b"t" * 99 + b"\n") for _ in range(3)]
    world = Sources(sources, IN_CHUNKS, format="text", limits=STREAMING)
    for number, key in enumerate(world.made):
        world.store.seed("source", key, b"%d\n" % number * 100_000, last_modified=NOW - 86_400)
    last = list(world.made)[-1]
    change_at(world, "read_source", last)
    receipt = world.run()
    assert receipt.counts.changed == 1
    assert world.store.count("upload_part") > 3
    assert world.store.unfinished_uploads("lake") == {}
    assert b"".join(world.outputs.values()).endswith(b"1\nnew\n")


def test_a_large_source_that_changed_leaves_no_upload() -> None:
    world = Sources([of(".log", b"t\n")], small_object_bytes=1)
    (key,) = world.made
    changed = False

    def change(call: Call) -> None:
        nonlocal changed
        if call.name == "copy_part" and not changed:
            changed = True
            world.store.seed("source", key, b"new\n", last_modified=NOW - 86_400)

    world.store.hooks.before.append(change)
    receipt = world.run()
    assert receipt.counts.changed == 1
    assert world.store.unfinished_uploads("lake") == {}
    assert list(world.outputs.values()) == [b"new\n"]


def test_a_worker_that_loses_the_race_leaves_no_upload() -> None:
    world = Sources([of(".log", b"a\n"), of(".log", b"b\n")], format="text")
    raced = False

    def race(call: Call) -> None:
        nonlocal raced
        if call.name == "create" and not raced:
            raced = True
            world.run()

    world.store.hooks.before.append(race)
    receipt = world.run()
    assert receipt.counts.conflicts == 1
    assert world.store.unfinished_uploads("lake") == {}
    assert list(world.outputs.values()) == [b"a\nb\n"]
    world.check_idle_again()


@pytest.mark.parametrize("copied", [False, True])
def test_an_imbalance_stops_the_run_before_anything_is_committed(
    copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_: dict[str, Any] = {"small_object_bytes": 1} if copied else {"format": "text"}
    world = Sources([of(".log", b"a\n" * 9), of(".log", b"b\n" * 9)], **given_)
    upload_part, copy_part = world.store.upload_part, world.store.copy_part

    def short(part: StoredPart) -> StoredPart:
        return StoredPart(part.number, part.etag, part.size - 1)

    monkeypatch.setattr(world.store, "upload_part", lambda *a: short(upload_part(*a)))
    monkeypatch.setattr(world.store, "copy_part", lambda *a: short(copy_part(*a)))
    with pytest.raises(IntegrityError, match="parts"):
        world.run()
    assert world.outputs == {}
    assert world.commits() == []
    assert world.store.unfinished_uploads("lake") == {}


def test_a_group_of_nothing_but_unreadable_sources_makes_no_output() -> None:
    broken = b'{"Records":[{"a":1}'
    name = "_CloudTrail_x.json"
    world = Sources([Made(name, broken, broken, Counter(), damaged=True)])
    world.check_everything()
    assert world.outputs == {}
    assert world.store.unfinished_uploads("lake") == {}


def test_sources_that_change_without_end_are_left_to_a_later_call() -> None:
    world = Sources([of(".log", b"a\n")], format="text")
    (key,) = world.made
    versions = 0

    def change(call: Call) -> None:
        nonlocal versions
        if call.name == "read_source":
            versions += 1
            world.store.seed("source", key, b"%d\n" % versions, last_modified=NOW - 86_400)

    world.store.hooks.before.append(change)
    with pytest.raises(TransientStoreError, match="planned"):
        world.run()
    assert versions < 50
    assert world.outputs == {}


# Server-side copies.


def test_a_large_source_in_an_archive_tier_is_left_alone_until_it_was_restored() -> None:
    world = Sources([of(".json", lines_of_json(100))], small_object_bytes=1)
    # Its listing does not tell that it has gone into an archive tier.
    (key,) = world.made
    world.store.unreadable["source", key] = QuarantineReason.ARCHIVED
    receipt = world.run()
    assert receipt.status == "done"
    assert [line.reason for line in receipt.quarantined] == ["archived_access_tier"]
    assert world.outputs == {}
    assert world.store.unfinished_uploads("lake") == {}
    world.store.unreadable.clear()
    world.run()
    assert list(world.outputs.values()) == [lines_of_json(100)]
    world.check_idle_again()


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        (".json.gz", ".json.gz"),
        ("-2026.01.02.log", ".02.log"),
        ("." + "x" * 40 + ".csv", ".csv"),
        (".a b.json", ".json"),
        ("no-dot", ""),
        (".é", ""),
    ],
)
def test_a_copy_keeps_the_short_end_of_its_sources_name(name: str, ending: str) -> None:
    source = of(name, b"{}\n")
    world = Sources([source], small_object_bytes=1)
    world.run()
    ((key, body),) = world.outputs.items()
    stem, dot, found = key.rsplit("/", 1)[-1].partition(".")
    assert (dot + found, body) == (ending, source.stored)
    assert stem.startswith("compacted-")


def test_a_source_larger_than_one_copy_may_be_is_copied_in_ranges() -> None:
    limits = WorkerLimits(copy_part_bytes=1_000)
    body = lines_of_json(100)
    sources = [of(".json", body)]
    world = Sources(sources, {"min_part_bytes": 1}, small_object_bytes=1, limits=limits)
    world.run()
    assert list(world.outputs.values()) == [body]
    assert world.store.count("copy_part") == -(-len(body) // 1_000)
    # Of its metadata, which `restore` gives back; the body stays where it is.
    assert world.store.count("read_source") == 1


def test_sources_of_one_byte_order_mark_or_no_byte_are_accounted_for() -> None:
    sources: Sequence[Made] = [of(".log", b"\xef\xbb\xbf"), of(".log", b"")]
    world = Sources(sources)
    world.check_everything()
    assert world.outputs == {}
    (commit,) = world.commits()
    assert commit.output is None
    assert len(commit.rows) == 2
