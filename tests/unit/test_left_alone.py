"""Sources that are not certain: left alone, reported, and tried again under other settings."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from compactor.errors import UnreadableSource
from compactor.escaping import shown_bytes
from compactor.limits import WorkerLimits
from compactor.log.counts import LeftAlone, added_up
from compactor.log.encoding import (
    decode_checkpoint,
    decode_commit,
    encode_checkpoint,
    encode_commit,
)
from compactor.log.log import CommitLog
from compactor.model import QuarantineReason, Skipped
from compactor.outputs import plain_content
from compactor.outputs.detection import decided_by
from compactor.partition.receipts import Counts, Receipt
from compactor.ports import SourceBody
from compactor.report.reasons import left_for_content
from compactor_cli.commands.runs import show_report
from compactor_cli.stored_reports import StoredReport
from compactor_cli.summary import print_summary
from tests.support.desk import Desk
from tests.support.examples import PARTITION, settings, source
from tests.support.memory_store import MemoryStore
from tests.support.world import World

UNKNOWN = b"what: is this\nnobody: knows\n"
LOG = b"2026-01-02 03:04:05 "


def outputs(world: World) -> list[bytes]:
    return list(world.store.contents("lake", "compacted/").values())


SINGLE_BYTE = [{"match": "*.log", "format": "text", "encoding": "single_byte"}]


def under(world: World, **given: object) -> Receipt:
    """Another run, under other settings."""
    world.settings = settings(**given)
    return world.run()


def reasons(receipt: Receipt) -> list[str]:
    return [line.reason for line in receipt.quarantined]


def test_two_sources_of_an_unknown_format_are_not_joined() -> None:
    world = World()
    world.put("a.txt", UNKNOWN)
    world.put("b.txt", UNKNOWN)
    receipt = world.run()
    assert receipt.status == "done"
    assert outputs(world) == []
    told = receipt.left_alone["unknown_format"]
    assert (told.objects, told.bytes) == (2, 2 * len(UNKNOWN))
    assert told.example == PARTITION.prefix + "a.txt"
    assert "it starts with 'what: is this\\nnobody: knows\\n'; formats decides" in told.detail


def test_a_source_left_alone_is_tried_again_when_the_settings_that_decide_change() -> None:
    world = World()
    world.put("a.txt", UNKNOWN)
    world.put("b.log", LOG + b"caf\xe9\n")
    assert reasons(world.run()) == ["unknown_format", "unknown_encoding"]
    reads = world.store.count("read_source")
    assert reasons(world.run()) == []
    assert world.store.count("read_source") == reads, "the same settings ask nobody again"

    # One that decides b.log alone: a.txt is looked at once more, and left alone once more.
    assert reasons(under(world, formats=SINGLE_BYTE)) == ["unknown_format"]
    assert outputs(world) == [LOG + b"caf\xe9\n"]
    reads = world.store.count("read_source")
    assert reasons(under(world, formats=SINGLE_BYTE)) == []
    assert world.store.count("read_source") == reads

    assert under(world, format="text").counts.objects_in == 1
    assert sorted(outputs(world)) == [LOG + b"caf\xe9\n", UNKNOWN]
    assert under(world).counts.objects_in == 0
    assert len(outputs(world)) == 2, "what is committed stays committed"


def test_a_setting_that_decides_nothing_asks_nothing_again() -> None:
    world = World()
    world.put("a.txt", UNKNOWN)
    world.run()
    reads = world.store.count("read_source")
    receipt = under(world, compression="gzip", min_objects=1)
    assert receipt.skipped["quarantined"].objects == 1
    assert world.store.count("read_source") == reads


def test_damage_depends_on_no_setting_of_formats() -> None:
    world = World()
    world.put("a.log.gz", gzip.compress(b"never read " * 50, mtime=0)[:-9])
    assert reasons(world.run()) == ["truncated"]
    assert reasons(under(world, format="text")) == []


def test_an_entry_says_under_which_settings_sources_were_left_alone() -> None:
    world = World()
    world.put("a.txt", UNKNOWN)
    world.run()
    log = CommitLog(world.store, world.settings, PARTITION)
    (commit,) = log.every_commit()
    assert commit.decided_by == decided_by(world.settings)
    assert decode_commit(encode_commit(commit)) == commit


def test_a_checkpoint_keeps_under_which_settings_sources_were_left_alone() -> None:
    world = World()
    world.put("a.txt", UNKNOWN)
    world.run()
    state = CommitLog(world.store, world.settings, PARTITION).load()
    again = decode_checkpoint(encode_checkpoint(state, "p/"), "p/")
    (identity,) = again.quarantined
    assert identity in again.left_alone(decided_by(world.settings))
    assert identity not in again.left_alone(decided_by(settings(format="text")))


def test_settings_that_decide_formats_make_other_outputs() -> None:
    given: tuple[dict[str, Any], ...] = ({}, {"format": "text"}, {"formats": SINGLE_BYTE})
    names = {decided_by(settings(**one)) for one in given}
    assert len(names) == 3
    assert decided_by(settings()) == decided_by(settings(compression="gzip"))


# Sources too large to be held whole.


STREAMING = WorkerLimits(whole_bytes=64 * 1024, block_bytes=10_000)


def in_chunks(**bodies: bytes) -> World:
    """A world whose sources come in chunks of 10 KB, and are streamed beyond 64 KiB."""
    world = World(limits=STREAMING)
    world.store = MemoryStore(world.clock, whole_bytes=1_000, chunk_bytes=10_007)
    for bucket in ("lake", "source"):
        world.store.add_bucket(bucket)
    for name, body in bodies.items():
        world.put(name + ".log", body)
    return world


LINES = b"".join(LOG + b"line %d\n" % n for n in range(8_000))
RECORDS = b"".join(b'{"n":%d,"text":"}{"}\n' % n for n in range(8_000))
W3C = b"#Version: 1.0\n#Fields: date time\n" + b"2026-01-02\t03:04:05\n" * 9_000


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (LINES + b"\r\n" + LOG + b"end\r", QuarantineReason.OPEN_END),
        (LINES + LOG + b"caf\xc3", QuarantineReason.OPEN_END),
        (LINES + LOG + b"\xff\n" + LINES, QuarantineReason.ENCODING),
        (LINES + LOG + b"\0\n" + LINES, QuarantineReason.BINARY),
        (RECORDS + b'{"cut":"off', QuarantineReason.OPEN_END),
        (RECORDS + b'{"cut":{"a":1}', QuarantineReason.OPEN_END),
        (RECORDS + b"no json\n" + RECORDS, QuarantineReason.UNKNOWN_FORMAT),
        (RECORDS + b'{"a":1}{"b":2}\n' + RECORDS, QuarantineReason.UNKNOWN_FORMAT),
        (W3C + b"#Fields: time date\n03:04:05\t2026-01-02\n", QuarantineReason.UNKNOWN_FORMAT),
    ],
)
def test_a_streamed_source_that_does_not_stay_what_it_began_as_is_left_alone(
    body: bytes, reason: QuarantineReason
) -> None:
    sound = next(one for one in (LINES, RECORDS, W3C) if body.startswith(one[:60]))
    without, world = in_chunks(a=sound, c=sound), in_chunks(a=sound, b=body, c=sound)
    without.run()
    receipt = world.run()
    assert reasons(receipt) == [reason]
    assert receipt.counts.objects_in == 2
    assert len(outputs(world)) == 1
    assert outputs(world) == outputs(without)
    assert world.store.unfinished_uploads("lake") == {}


@pytest.mark.parametrize("body", [LINES, RECORDS, W3C, LINES.replace(b"\n", b"\r\n")])
def test_a_streamed_source_that_stays_what_it_began_as_is_joined(body: bytes) -> None:
    other = body.rstrip() + " é".encode() if body.startswith(LOG) else body.rstrip()
    world = in_chunks(a=body, b=other)
    assert world.run().counts.objects_in == 2


def test_a_large_binary_object_is_refused_after_its_first_chunk() -> None:
    taken: list[int] = []

    def chunks() -> Iterator[bytes]:
        for number in range(40):
            taken.append(number)
            yield b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(1 << 20)

    with pytest.raises(UnreadableSource, match="binary: it has a NUL byte at 4"):
        plain_content.read(SourceBody(source("a.jpg"), chunks=chunks), settings())
    assert taken == [0]


# What is said of it.


def test_the_headline_says_that_sources_were_left_alone() -> None:
    left = {
        "open_quote": LeftAlone(4_000, 1, "k", "seen"),
        "unknown_format": LeftAlone(812, 1, "k", "seen"),
    }
    reason = "4,812 left alone: mostly quotes not closed, complete them"
    assert left_for_content(188, left, {}) == f"188 of 5,000 objects compacted, {reason}"
    assert left_for_content(5_000, left, {}) == f"5,000 of 9,812 objects compacted, {reason}"
    assert left_for_content(7, {}, {}) == ""
    only = {"open_end": LeftAlone(3, 1)}
    line = "0 of 3 objects compacted, 3 left alone: last records incomplete, complete them"
    assert left_for_content(0, only, {}) == line
    earlier = {"quarantined": Skipped(9, 1)}
    line = "1 of 10 objects compacted, 9 left alone by earlier runs: see their reports"
    assert left_for_content(1, {}, earlier) == line


@pytest.mark.parametrize("reason", QuarantineReason)
def test_the_headline_has_words_for_every_reason(reason: QuarantineReason) -> None:
    line = left_for_content(0, {reason.value: LeftAlone(1, 1)}, {})
    assert re.search(r"1 left alone: [a-z]", line)


def test_a_paragraph_that_repeats_is_shown_once_with_its_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    desk = Desk("a/", "b/", "c/")
    for path in ("a/", "b/"):
        desk.receipt(path, status="failed", error="IntegrityError", cause="the same")
    desk.receipt("c/", counts=Counts(objects_in=1, objects_out=1), left_alone={})
    report = desk.report()
    assert report.cause == "a/ and 1 more partition: IntegrityError the same"
    document = {**json.loads(desk.stored("report.json")), "warnings": ["seen", "seen", "other"]}
    show_report(StoredReport(document, "lake", "state/runs/r/report.json", 1.0))
    out = capsys.readouterr().out
    assert "failed: a/ and 1 more partition: IntegrityError the same\n" in out
    assert "warning: seen (2 times)\nwarning: other\n" in out
    assert "more failure" not in out


def test_a_report_adds_up_what_was_left_alone_and_shows_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    desk = Desk("a/", "b/")
    told = LeftAlone(2, 20, "a/k<b>", "it starts with '\\x00'; set format")
    for path in ("a/", "b/"):
        desk.receipt(path, counts=Counts(objects_in=1), left_alone={"unknown_format": told})
    desk.report()
    document = json.loads(desk.stored("report.json"))
    line = (
        "2 of 6 objects compacted, 4 left alone: of no format that is certain,"
        " declare it in formats; compactor scan proposes it"
    )
    assert document["headline"] == line
    assert document["left_alone"]["unknown_format"] == {
        "objects": 4,
        "bytes": 40,
        "example": "a/k<b>",
        "detail": "it starts with '\\x00'; set format",
    }
    texts = desk.page.text
    for text in (document["headline"], "a/k<b>", told.detail, "format"):
        assert text in texts
    print_summary(document, 1.0)
    out = capsys.readouterr().out
    assert f"Run {document['run_id']}: succeeded, {line}\n" in out
    assert "left alone: 4 sources, unknown_format, such as" in out


def test_counts_of_replaced_commits_are_not_reported() -> None:
    assert added_up([{"open_end": LeftAlone(0, 0, "k")}]) == {}


def test_bytes_are_shown_escaped_and_cut() -> None:
    assert shown_bytes(b"a\x00\x1b\xff\n") == r"'a\x00\x1b\xff\n'"
    assert shown_bytes(b"x" * 41) == "'" + "x" * 40 + "'..."
    assert shown_bytes(b"x" * 40) == "'" + "x" * 40 + "'"
