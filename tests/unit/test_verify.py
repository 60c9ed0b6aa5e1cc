"""Verification finds what is wrong: before a commit by its sums, afterwards by reading again."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compactor.destination import Destination
from compactor.errors import IntegrityError
from compactor.formats.framing import Edit
from compactor.log.entries import Commit, Output
from compactor.log.log import CommitLog
from compactor.log.manifest import ManifestRow, SliceFacts
from compactor.model import (
    Compression,
    Format,
    ObjectGroup,
    Quarantined,
    QuarantineReason,
    Signature,
    StoredPart,
)
from compactor.outputs.compact import compact
from compactor.outputs.pending import PendingOutput
from compactor.outputs.verify import check_commit, check_pending
from compactor.planning.packing import make_group
from tests.support.examples import NOW, ON_LINES, PARTITION, settings, source
from tests.support.world import World

DESTINATION = Destination("lake", "compacted/2026/01/02/")
JSON = (b'{"a":1}\n{"a":2}', b'{"a":3}\n', b'\xef\xbb\xbf{"a":4}')
CSV = (b"id,n\n1,a\n", b"id,n\n2,b\n3,c", b"id,n\n")
TSV = (b"id\tn\r\n1\ta\r\n", b"id\tn\r\n2\tb\r\n3\tc", b"id\tn\r\n")
TRAIL = (b'{"Records":[{"a":1},{"a":2}]}', b' {"Records" : [ {"a":3} ]}\n', b'{"Records":[]}')
FIREHOSE = (b'{"a":1}{"a":2}', b'{"a":3}{"a":4}\n{"a":5} ')
CONTENTS = {
    ".json": JSON,
    ".csv": CSV,
    ".tsv": TSV,
    "_CloudTrail_.json": TRAIL,
    ".dat": FIREHOSE,
}


def world_of(ending: str, contents: tuple[bytes, ...], **given: Any) -> World:
    world = World(**given)
    for number, content in enumerate(contents):
        packed = ending.endswith(".gz")
        world.put(f"{number}{ending}", content, packed=packed)
    return world


def pending_of(ending: str, contents: tuple[bytes, ...], **given: Any) -> PendingOutput:
    world = world_of(ending, contents, **given)
    (page,) = world.store.list_objects("source", "")
    group = make_group(page, world.settings)
    if given.get("small_object_bytes"):
        group = make_group(page[:1], world.settings, copy=True)
    return compact(group, world.settings, world.store, DESTINATION)


# Before the commit.


@pytest.mark.parametrize("ending", CONTENTS)
@pytest.mark.parametrize("compression", ["same", "gzip", "zstd"])
@pytest.mark.parametrize("lines", [True, False])
def test_an_output_that_balances_passes(ending: str, compression: str, lines: bool) -> None:
    given = {"formats": ON_LINES} if lines else {}
    pending = pending_of(ending, CONTENTS[ending], compression=compression, **given)
    check_pending(pending)
    assert len(pending.rows) == len(CONTENTS[ending])


def test_a_copy_that_balances_passes() -> None:
    pending = pending_of(".json", JSON, small_object_bytes=1)
    check_pending(pending)
    assert pending.output is not None
    assert pending.output.copied


Change = Callable[[PendingOutput], PendingOutput]


def with_row(pending: PendingOutput, number: int, **changes: Any) -> PendingOutput:
    rows = list(pending.rows)
    rows[number] = rows[number]._replace(**changes)
    return replace(pending, rows=tuple(rows))


def with_facts(pending: PendingOutput, number: int, **changes: Any) -> PendingOutput:
    return with_row(pending, number, facts=facts_of(pending, number)._replace(**changes))


def with_output(pending: PendingOutput, **changes: Any) -> PendingOutput:
    assert pending.output is not None
    return replace(pending, output=replace(pending.output, **changes))


def with_tally(pending: PendingOutput, **more: int) -> PendingOutput:
    changed = {name: getattr(pending.tally, name) + add for name, add in more.items()}
    return replace(pending, tally=replace(pending.tally, **changed))


def output_of(pending: PendingOutput) -> Output:
    assert pending.output is not None
    return pending.output


def facts_of(pending: PendingOutput, number: int) -> SliceFacts:
    facts = pending.rows[number].facts
    assert facts is not None
    return facts


def quarantine(pending: PendingOutput, row: ManifestRow) -> PendingOutput:
    one = Quarantined(row.source, QuarantineReason.CORRUPT, "")
    return replace(pending, quarantined=(one,))


def misfit(pending: PendingOutput, row: ManifestRow) -> PendingOutput:
    signature = Signature(Format.TEXT, Compression.NONE)
    return replace(pending, misfits={row.source.identity: signature})


def first_part_longer(pending: PendingOutput) -> PendingOutput:
    first, *others = output_of(pending).parts
    longer = StoredPart(first.number, first.etag, first.size + 1)
    return with_output(pending, parts=(longer, *others))


IMBALANCES: dict[str, Change] = {
    "a source is missing": lambda p: replace(p, rows=p.rows[1:]),
    "a source is there twice": lambda p: replace(p, rows=(p.rows[0], *p.rows)),
    "a source stands for another": lambda p: replace(p, rows=(p.rows[0], *p.rows[:-1])),
    "a strange source": lambda p: with_row(p, 0, source=source("strange")),
    "a source of another ETag": lambda p: with_row(
        p, 0, source=replace(p.rows[0].source, etag="other")
    ),
    "a source is quarantined, too": lambda p: quarantine(p, p.rows[0]),
    "a source is a misfit, too": lambda p: misfit(p, p.rows[0]),
    "a source nobody planned": lambda p: replace(
        p, group=ObjectGroup(p.group.id, p.group.sources[1:])
    ),
    "a slice is longer": lambda p: with_row(p, 0, length=p.rows[0].length + 1),
    "a slice is shorter": lambda p: with_row(p, 0, length=p.rows[0].length - 1),
    "a slice overlaps the one before": lambda p: with_row(p, 1, offset=p.rows[1].offset - 2),
    "the slices are swapped": lambda p: replace(p, rows=(p.rows[1], p.rows[0], *p.rows[2:])),
    "a slice lies behind the end": lambda p: with_row(
        p, 1, offset=p.tally.plain_bytes - p.rows[1].length + 1
    ),
    "a source had more bytes": lambda p: with_row(
        p, 0, plain_bytes=(p.rows[0].plain_bytes or 0) + 1
    ),
    "a source's size is unknown": lambda p: with_row(p, 0, plain_bytes=None),
    "a source's facts are unknown": lambda p: with_row(p, 0, facts=None),
    "a byte was appended, or was not": lambda p: with_facts(
        p, 1, appended=1 - facts_of(p, 1).appended
    ),
    "a longer prefix was dropped": lambda p: with_facts(
        p, 0, dropped_prefix=b"x" + facts_of(p, 0).dropped_prefix
    ),
    "a suffix was dropped, it says": lambda p: with_facts(p, 0, dropped_suffix=b"xyz!"),
    "an edit, it says": lambda p: with_facts(
        p, 0, newlines_stand_for=None, edits=(Edit(0, 3, b""), Edit(9, 0, b"x"))
    ),
    "more was written": lambda p: with_tally(p, plain_bytes=1),
    "less was written": lambda p: with_tally(p, plain_bytes=-1),
    "more of the frame was written": lambda p: with_tally(p, frame_bytes=1),
    "the output's plain size differs": lambda p: with_output(
        p, plain_bytes=(output_of(p).plain_bytes or 0) + 1
    ),
    "the output's size differs": lambda p: with_output(p, size=output_of(p).size + 1),
    "a part is longer": first_part_longer,
    "a part is missing": lambda p: with_output(p, parts=output_of(p).parts[:-1]),
}  # fmt: skip
JOINED: dict[str, Change] = {
    "a record more": lambda p: with_facts(p, 0, records=(facts_of(p, 0).records or 0) + 1),
    "a record less": lambda p: with_facts(p, 0, records=(facts_of(p, 0).records or 0) - 1),
    "newlines stand for more": lambda p: with_facts(p, 0, newlines_stand_for=b",,"),
}
OF_LINES: dict[str, Change] = {
    "a newline more": lambda p: with_tally(p, newlines=1),
    "a newline less": lambda p: with_tally(p, newlines=-1),
    "a newline more in the frame": lambda p: with_tally(p, frame_newlines=1),
}
OF_RECORDS: dict[str, Change] = {
    "a record more": lambda p: with_output(p, records=(output_of(p).records or 0) + 1),
    "records unknown": lambda p: with_output(p, records=None),
}


@pytest.mark.parametrize("ending", CONTENTS)
@pytest.mark.parametrize("what", IMBALANCES)
def test_an_imbalance_is_found_before_the_commit(ending: str, what: str) -> None:
    pending = pending_of(ending, CONTENTS[ending])
    changed = IMBALANCES[what](pending)
    assert changed != pending
    with pytest.raises(IntegrityError):
        check_pending(changed)


@pytest.mark.parametrize("what", JOINED)
def test_objects_put_on_lines_must_account_for_every_newline(what: str) -> None:
    pending = pending_of(".dat", FIREHOSE)
    check_pending(pending)
    with pytest.raises(IntegrityError, match="bytes of"):
        check_pending(JOINED[what](pending))


@pytest.mark.parametrize("what", OF_LINES)
def test_lost_or_doubled_lines_are_found_before_the_commit(what: str) -> None:
    pending = pending_of(".json", JSON)
    with pytest.raises(IntegrityError, match="records"):
        check_pending(OF_LINES[what](pending))


@pytest.mark.parametrize("ending", CONTENTS)
@pytest.mark.parametrize("what", OF_RECORDS)
def test_a_wrong_sum_of_records_is_found_before_the_commit(ending: str, what: str) -> None:
    pending = pending_of(ending, CONTENTS[ending])
    with pytest.raises(IntegrityError, match="records"):
        check_pending(OF_RECORDS[what](pending))


@pytest.mark.parametrize(
    "what", ["a source is missing", "a strange source", "a part is longer", "a part is missing"]
)
def test_an_imbalance_of_a_copy_is_found_before_the_commit(what: str) -> None:
    pending = pending_of(".json", JSON, small_object_bytes=1)
    with pytest.raises(IntegrityError):
        check_pending(IMBALANCES[what](pending))


def test_a_group_that_came_to_nothing_still_accounts_for_its_sources() -> None:
    group = make_group([source("a")], settings())
    with pytest.raises(IntegrityError, match="1 sources went in"):
        check_pending(PendingOutput(group=group, output=None, rows=()))


# Afterwards.


def committed(ending: str, contents: tuple[bytes, ...], **given: Any) -> tuple[World, Commit]:
    world = world_of(ending, contents, **given)
    world.run()
    (commit,) = CommitLog(world.store, world.settings, PARTITION).every_commit()
    return world, commit


def overwrite(world: World, commit: Commit, change: Callable[[bytes], bytes]) -> None:
    """Put another object in an output's place; its old bytes are in ``change``'s hands."""
    output = commit.output
    assert output is not None
    body = change(world.store.contents("lake")[output.key])
    world.store.seed("lake", output.key, body, last_modified=NOW)


def refuses(world: World, commit: Commit) -> None:
    with pytest.raises(IntegrityError):
        check_commit(commit, world.store)


WAYS = [(ending, compression) for ending in CONTENTS for compression in ("none", "gzip", "zstd")]


@pytest.mark.parametrize(("ending", "compression"), WAYS)
def test_a_sound_output_passes_and_shows_its_records(ending: str, compression: str) -> None:
    world, commit = committed(ending, CONTENTS[ending], compression=compression)
    expected = {".json": 4, ".csv": 3, ".tsv": 3, "_CloudTrail_.json": 3, ".dat": 5}
    assert check_commit(commit, world.store) == expected[ending]


@pytest.mark.parametrize(("ending", "compression"), WAYS)
def test_every_flipped_byte_of_an_output_is_found(ending: str, compression: str) -> None:
    world, commit = committed(ending, CONTENTS[ending], compression=compression)
    assert commit.output is not None
    sound = world.store.contents("lake")[commit.output.key]
    for at in range(len(sound)):
        flipped = sound[:at] + bytes([sound[at] ^ 1 << at % 8]) + sound[at + 1 :]
        world.store.seed("lake", commit.output.key, flipped)
        refuses(world, commit)
    world.store.seed("lake", commit.output.key, sound)
    check_commit(commit, world.store)


@pytest.mark.parametrize(("ending", "compression"), WAYS)
def test_every_length_an_output_may_be_cut_to_is_found(ending: str, compression: str) -> None:
    world, commit = committed(ending, CONTENTS[ending], compression=compression)
    assert commit.output is not None
    sound = world.store.contents("lake")[commit.output.key]
    for length in range(len(sound)):
        world.store.seed("lake", commit.output.key, sound[:length])
        refuses(world, commit)


@pytest.mark.parametrize(("ending", "compression"), WAYS)
@pytest.mark.parametrize(
    "change",
    [
        lambda body: body + b"\n",
        lambda body: body + body,
        lambda body: body + gzip.compress(b"", mtime=0),
        lambda body: b"something else",
        lambda body: random.Random(1).randbytes(len(body)),
        lambda body: b"",
    ],
    ids=["newline", "doubled", "empty member", "other", "noise", "nothing"],
)
def test_an_output_with_other_bytes_is_found(
    ending: str, compression: str, change: Callable[[bytes], bytes]
) -> None:
    world, commit = committed(ending, CONTENTS[ending], compression=compression)
    overwrite(world, commit, change)
    refuses(world, commit)


def test_the_same_plain_bytes_encoded_otherwise_are_not_what_was_committed() -> None:
    world, commit = committed(".json.gz", JSON)
    overwrite(world, commit, lambda body: gzip.compress(gzip.decompress(body), 1, mtime=7))
    refuses(world, commit)


def test_an_output_that_is_gone_is_found() -> None:
    world, commit = committed(".json", JSON)
    assert commit.output is not None
    world.store.remove("lake", commit.output.key)
    with pytest.raises(IntegrityError, match="is gone"):
        check_commit(commit, world.store)


LIES: dict[str, Callable[[ManifestRow, ManifestRow], tuple[ManifestRow, ManifestRow]]] = {
    "checksums swapped": lambda a, b: (a._replace(crc32=b.crc32), b._replace(crc32=a.crc32)),
    "offsets swapped": lambda a, b: (a._replace(offset=b.offset), b._replace(offset=a.offset)),
    "lengths swapped": lambda a, b: (a._replace(length=b.length), b._replace(length=a.length)),
    "facts swapped": lambda a, b: (a._replace(facts=b.facts), b._replace(facts=a.facts)),
    "a size too large": lambda a, b: (a._replace(plain_bytes=(a.plain_bytes or 0) + 1), b),
    "a slice too short": lambda a, b: (a._replace(length=a.length - 1), b),
    "a slice too long": lambda a, b: (a._replace(length=a.length + 1), b),
    "a slice elsewhere": lambda a, b: (a._replace(offset=a.offset + 1), b),
    "a slice behind the end": lambda a, b: (a, b._replace(offset=b.offset + 10_000)),
    "an unknown checksum": lambda a, b: (a._replace(crc32=None), b),
}


@pytest.mark.parametrize("ending", CONTENTS)
@pytest.mark.parametrize("lie", LIES)
def test_a_manifest_that_lies_is_found(ending: str, lie: str) -> None:
    world, commit = committed(ending, CONTENTS[ending])
    first, second, *others = commit.rows
    rows = (*LIES[lie](first, second), *others)
    assert rows != commit.rows
    refuses(world, replace(commit, rows=rows))


def test_a_commit_that_lies_about_its_output_is_found() -> None:
    world, commit = committed(".json", JSON)
    output = commit.output
    assert output is not None
    refuses(world, replace(commit, output=replace(output, size=output.size + 1)))
    refuses(world, replace(commit, output=replace(output, crc32=(output.crc32 or 0) ^ 1)))
    refuses(world, replace(commit, output=replace(output, compression=Compression.GZIP)))


def test_a_copy_is_compared_with_the_size_and_the_md5_sum_of_its_source() -> None:
    world, commit = committed(".json", JSON[:1], small_object_bytes=1)
    assert check_commit(commit, world.store) == 0
    overwrite(world, commit, lambda body: body[:-1])
    refuses(world, commit)
    overwrite(world, commit, lambda body: b"x" * len(JSON[0]))
    refuses(world, commit)


def test_a_copy_of_a_multipart_source_has_no_md5_sum_to_be_compared_with() -> None:
    world, commit = committed(".json", JSON[:1], small_object_bytes=1)
    (row,) = commit.rows
    multipart = row._replace(source=replace(row.source, etag="0123456789abcdef" * 2 + "-2"))
    assert check_commit(replace(commit, rows=(multipart,)), world.store) == 0
    longer = multipart._replace(source=replace(multipart.source, size=multipart.source.size + 1))
    refuses(world, replace(commit, rows=(longer,)))


def test_an_etag_of_an_encrypted_source_is_not_taken_for_an_md5_sum() -> None:
    world, commit = committed(".json", JSON[:1], small_object_bytes=1)
    (row,) = commit.rows
    # SSE-KMS: 32 hex digits that are no MD5 sum, and other ones for the copied part.
    encrypted = row._replace(source=replace(row.source, etag="0123456789abcdef" * 2))
    assert check_commit(replace(commit, rows=(encrypted,)), world.store) == 0


def test_a_commit_without_output_has_nothing_to_be_read() -> None:
    world, commit = committed(".json", (b"\xef\xbb\xbf",))
    assert commit.output is None
    before = len(world.store.calls)
    assert check_commit(commit, world.store) == 0
    assert len(world.store.calls) == before
