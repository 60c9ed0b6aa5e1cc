"""Large sources whose bytes need no change are copied by S3 into an output among others."""

from __future__ import annotations

import pytest

from compactor.limits import USUAL
from compactor.log.identity import claim_identity
from compactor.log.log import CommitLog
from compactor.log.schemes import remember_scheme
from compactor.outputs.output_writer import copy_ranges
from compactor.outputs.verify import check_commit
from tests.support.examples import PARTITION
from tests.support.world import World

STAMP = b"2026-01-02 03:04:05 "
BIG = USUAL.copy_slice_bytes + 12_345


def lines(size: int, letter: bytes, *, newline: bool = True) -> bytes:
    line = STAMP + letter * (99 - len(STAMP)) + b"\n"
    whole = max(0, size // len(line) - 1)
    # The last line is as long as it takes.
    last = STAMP + letter * (size - whole * len(line) - len(STAMP) - 1)
    return line * whole + last + (b"\n" if newline else letter)


def world(*bodies: bytes, suffix: str = "log") -> World:
    made = World()
    for number, body in enumerate(bodies):
        made.put(f"{number}.{suffix}", body)
    return made


def the_output(made: World) -> bytes:
    made.run()
    (body,) = made.store.contents("lake", "compacted/").values()
    (commit,) = CommitLog(made.store, made.settings, PARTITION).every_commit()
    check_commit(commit, made.store)
    return body


@pytest.mark.parametrize(
    "bodies",
    [
        (lines(BIG, b"a"), lines(BIG, b"b")),
        (lines(100, b"a"), lines(BIG, b"b"), lines(300, b"c")),
        (
            lines(USUAL.min_part_bytes + 7, b"a"),
            lines(BIG, b"b"),
            lines(BIG, b"c"),
            lines(30, b"d"),
        ),
        (lines(BIG, b"a", newline=False), lines(BIG, b"b", newline=False)),
        (lines(50, b"a", newline=False), lines(BIG, b"b"), lines(50, b"c", newline=False)),
    ],
)
def test_the_output_is_what_reading_every_source_would_have_made(bodies):
    made = world(*bodies)
    wanted = b"".join(body if body.endswith(b"\n") else body + b"\n" for body in bodies)
    # A newline between two sources is needed; one behind the last is not worth another request.
    copied_last = len(bodies[-1]) >= USUAL.copy_slice_bytes and not bodies[-1].endswith(b"\n")
    assert the_output(made) == (wanted[:-1] if copied_last else wanted)
    assert made.store.count("copy_part") == sum(
        len(body) >= USUAL.copy_slice_bytes for body in bodies
    )


def test_of_a_copied_source_only_its_ends_are_read():
    made = world(lines(BIG, b"a"), lines(BIG, b"b"))
    the_output(made)
    assert made.store.snapshot()["bytes_read"] < 4 * BIG
    made = world(lines(BIG, b"a"), lines(BIG, b"b"))
    before = made.store.count("read_source")
    the_output(made)
    assert made.store.count("read_source") > before


def test_five_large_sources_become_one_output_in_two_dozen_requests():
    made = world(*(lines(BIG, letter) for letter in (b"a", b"b", b"c", b"d", b"e")))
    # What the first run of a destination does once is not counted.
    claim_identity(made.settings, made.store)
    remember_scheme(made.settings, made.store)
    receipt = made.run()
    assert len(made.store.contents("lake", "compacted/")) == 1
    asked = dict(receipt.counts.requests)
    assert asked.pop("bytes_read") < 10**6
    asked.pop("bytes_written")
    # Beside them the run writes its receipt and its checkpoint, however many sources there are.
    assert sum(asked.values()) == 26


@pytest.mark.parametrize(
    ("first", "suffix"),
    [
        (b"\xef\xbb\xbf" + lines(BIG, b"a"), "log"),
        (b"id,name\n" + lines(BIG, b"a"), "csv"),
    ],
)
def test_a_source_that_must_be_edited_is_read_and_not_copied(first, suffix):
    made = world(first, suffix=suffix)
    made.run()
    assert made.store.count("copy_part") == 0
    made.check()


def test_a_source_that_changes_before_its_copy_is_planned_again():
    made = world(lines(100, b"a"), lines(BIG, b"b"))
    new = lines(BIG, b"n")

    def overwrite(call):
        current = made.store.contents("source")[key]
        if call.name == "copy_part" and b"nnn" not in current[:99]:
            made.put("1.log", new)

    key = PARTITION.prefix + "1.log"
    made.store.hooks.before.append(overwrite)
    receipt = made.run()
    assert receipt.counts.changed == 1
    made.run()
    bodies = b"".join(made.store.contents("lake", "compacted/").values())
    assert lines(BIG, b"b") not in bodies


@pytest.mark.parametrize(
    "size", [1, USUAL.copy_part_bytes, USUAL.copy_part_bytes + 1, 3 * USUAL.copy_part_bytes - 1]
)
def test_copy_ranges_cover_everything_once_within_what_s3_takes(size):
    end = 0
    parts = list(copy_ranges(0, size, USUAL))
    for start, length in parts:
        assert start == end
        assert length <= USUAL.copy_part_bytes
        end += length
    assert end == size
    assert all(length >= USUAL.min_part_bytes for _, length in parts) or len(parts) == 1
