"""Content that a commit has already is not compacted twice, and cleaned up like the first."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import replace

import pytest

from compactor.clock import NoDeadline
from compactor.errors import IntegrityError, InvalidInput
from compactor.limits import WorkerLimits
from compactor.log.encoding import (
    decode_checkpoint,
    decode_commit,
    encode_checkpoint,
    encode_commit,
)
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.log.log_reader import one_log
from compactor.model import PASSING_REASONS, QuarantineReason
from compactor.outputs.restore import Wanted, find, restore
from compactor.outputs.verify import check_commit
from compactor.runs.partition_receipts import Counts, Receipt
from compactor.runs.run_partition import PartitionRun, record_partition
from compactor.settings.settings import Settings
from compactor_cli.source_check import Sources
from tests.support.cleaning import DAY, rewrite
from tests.support.examples import PARTITION, settings
from tests.support.memory_store import Call, Crashed
from tests.support.world import World

RETENTION = 7 * DAY
ETAG = "0123456789abcdef0123456789abcdef-2"


def world(sources: int = 3, **given: object) -> World:
    made = World(clean_up="delete", retention_days=7, **given)
    for number in range(sources):
        made.add(f"{number}.json", '{{"id": "{}"}}')
    made.run()
    made.clock.advance(3_600)
    return made


def key(number: int) -> str:
    return f"{PARTITION.prefix}{number}.json"


def deliver(made: World, number: int, body: bytes | None = None, *, etag: str = "") -> None:
    """Put an object again; with an ETag as of a multipart upload."""
    content = body or made.store.contents("source").get(key(number)) or bodies[number]
    made.store.seed("source", key(number), content, etag=etag)
    made.clock.advance(3_600)


bodies = {
    number: b"\n".join(b'{"id": "record-%d"}' % n for n in range(3 * number, 3 * number + 3))
    for number in range(3)
}


def commits(made: World) -> list[Commit]:
    return list(CommitLog(made.store, made.settings, PARTITION).every_commit())


def skipped(receipt: Receipt) -> dict[str, tuple[int, tuple[str, ...]]]:
    return {name: (one.objects, one.examples) for name, one in receipt.skipped.items()}


def test_the_same_content_with_another_etag_is_recorded_and_not_compacted_twice() -> None:
    made = world()
    before = made.store.contents("lake", "compacted/")
    deliver(made, 1, etag=ETAG)
    receipt = made.run()
    assert made.store.contents("lake", "compacted/") == before
    assert (receipt.counts.objects_in, receipt.counts.delivered_again) == (0, 1)
    assert skipped(receipt)["delivered_again"] == (1, (key(1),))
    (again,) = commits(made)[0].again
    assert (again.source.key, again.source.etag, again.of) == (key(1), ETAG, 1)
    made.must_be_finished()
    assert made.store.unfinished_uploads("lake") == {}


def test_content_is_not_taken_for_new_where_the_entry_that_has_it_is_gone() -> None:
    made = world()
    before = made.store.contents("lake", "compacted/")
    deliver(made, 1, etag=ETAG)
    (first,) = (one for one in made.store.contents("lake") if one.endswith(f"/{1:020d}.json.gz"))

    def somebody(call: Call) -> None:
        if call.name == "read_source":
            made.store.hooks.clear()
            made.store.remove("lake", first)

    made.store.hooks.before.append(somebody)
    with pytest.raises(IntegrityError, match="has no entry 1"):
        made.run()
    assert made.store.contents("lake", "compacted/") == before


def test_an_upload_is_aborted_immediately_where_the_look_up_of_the_content_fails() -> None:
    made = world()
    deliver(made, 1, etag=ETAG)
    made.add("9.json", '{{"id": "{}"}}')
    (first,) = (one for one in made.store.contents("lake") if one.endswith(f"/{1:020d}.json.gz"))

    def somebody(call: Call) -> None:
        if call.name == "upload_part":
            made.store.hooks.clear()
            made.store.remove("lake", first)

    made.store.hooks.before.append(somebody)
    with pytest.raises(IntegrityError, match="has no entry 1"):
        made.run()
    assert made.store.count("abort_upload") == 1
    assert made.store.unfinished_uploads("lake") == {}


def test_equal_content_in_another_compression_is_the_same_content() -> None:
    made = world()
    deliver(made, 1, gzip.compress(bodies[1], mtime=0))
    assert made.run().counts.delivered_again == 1
    made.must_be_finished()


def test_some_again_among_others_that_are_new() -> None:
    made = world()
    deliver(made, 0, etag=ETAG)
    deliver(made, 2, etag=ETAG)
    made.add("9.json", '{{"id": "{}"}}')
    receipt = made.run()
    assert (receipt.counts.objects_in, receipt.counts.delivered_again) == (1, 2)
    made.must_be_finished()
    for commit in commits(made):
        check_commit(commit, made.store)


def test_other_content_at_a_committed_key_is_compacted_beside_the_old_and_reported() -> None:
    made = world()
    deliver(made, 1, b'{"id": "record-100"}\n')
    made.records.add(100)
    receipt = made.run()
    assert (receipt.counts.objects_in, receipt.counts.overwritten) == (1, 1)
    assert receipt.counts.delivered_again == 0
    assert receipt.overwritten.examples == (key(1),)
    made.must_be_finished()


def test_old_content_that_comes_back_after_other_content_is_not_doubled() -> None:
    made = world()
    deliver(made, 1, b'{"id": "record-100"}\n')
    made.records.add(100)
    made.run()
    deliver(made, 1, bodies[1], etag=ETAG)
    assert made.run().counts.delivered_again == 1
    made.must_be_finished()


def test_content_of_equal_size_is_no_equal_content() -> None:
    made = world()
    other = bodies[1].replace(b"record-3", b"record-0")
    assert len(other) == len(bodies[1])
    deliver(made, 1, other, etag=ETAG)
    assert made.run().counts.overwritten == 1


def test_what_only_looks_the_same_by_its_mark_is_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compactor.log.content_index.mark_of", "compactor.outputs.known_contents.mark_of"):
        monkeypatch.setattr(name, lambda plain_bytes, crc32: 77)
    made = world()
    deliver(made, 1, b'{"id": "record-100"}\n')
    made.records.add(100)
    receipt = made.run()
    assert (receipt.counts.objects_in, receipt.counts.delivered_again) == (1, 0)
    assert receipt.counts.overwritten == 1
    assert made.store.unfinished_uploads("lake") == {}
    made.must_be_finished()


def test_long_content_is_compared_to_its_end() -> None:
    long = b"".join(b'{"id": "record-%d"}\n' % n for n in range(50_000, 100_000))
    made = World(limits=WorkerLimits(whole_bytes=10_000))
    made.records |= set(range(50_000, 100_000))
    made.put("0.json", long)
    made.run()
    made.clock.advance(3_600)
    deliver(made, 0, long, etag=ETAG)
    assert made.run().counts.delivered_again == 1
    made.must_be_finished()
    other = long.replace(b"record-99999", b"record-11111")
    made.records.add(11_111)
    deliver(made, 0, other)
    receipt = made.run()
    assert (receipt.counts.delivered_again, receipt.counts.overwritten) == (0, 1)
    assert other in made.store.contents("lake", "compacted/").values()


def copied_world(**given: object) -> World:
    """One source that S3 copied whole: nobody has read its bytes."""
    made = World(small_object_bytes=40, **given)
    made.put("0.log.gz", stored_in_gzip(b"2026-01-02T03:04:05Z record-00001\n"))
    made.run()
    assert made.store.count("copy_part") == 1
    made.clock.advance(3_600)
    return made


def stored_in_gzip(content: bytes) -> bytes:
    """Content as it is: all such objects of one size have one CRC32, that of the whole."""
    return gzip.compress(content, 0, mtime=0)


def test_what_s3_copied_is_recognised_by_its_stored_bytes() -> None:
    made = copied_world()
    before = made.store.contents("lake", "compacted/")
    name = f"{PARTITION.prefix}0.log.gz"
    made.store.seed("source", name, made.store.contents("source")[name], etag=ETAG)
    made.clock.advance(3_600)
    receipt = made.run()
    assert (receipt.counts.delivered_again, receipt.counts.objects_in) == (1, 0)
    assert made.store.contents("lake", "compacted/") == before


def test_what_may_not_be_read_to_be_compared_is_left_for_another_run() -> None:
    made = copied_world()
    name = f"{PARTITION.prefix}0.log.gz"
    made.store.seed("source", name, made.store.contents("source")[name], etag=ETAG)
    made.store.unreadable["source", name] = QuarantineReason.ENCRYPTED
    made.put("1.json", b'{"id": 1}\n')
    made.clock.advance(3_600)
    receipt = made.run()
    assert (receipt.status, receipt.counts.quarantined) == ("done", 1)
    made.store.unreadable.clear()
    assert made.run().counts.delivered_again == 1


@pytest.mark.parametrize("reason", sorted(PASSING_REASONS))
def test_what_s3_copied_and_may_not_be_read_now_is_left_alone_until_it_may(reason: str) -> None:
    made = copied_world()
    before = made.store.contents("lake", "compacted/")
    name = f"{PARTITION.prefix}0.log.gz"
    made.store.seed("source", name, made.store.contents("source")[name], etag=ETAG)
    made.clock.advance(3_600)
    made.add("9.json", '{{"id": "{}"}}')
    made.store.unreadable["source", name] = QuarantineReason(reason)
    receipt = made.run()
    assert (receipt.counts.delivered_again, receipt.counts.objects_in) == (0, 1)
    made.store.unreadable.clear()
    assert made.run().counts.delivered_again == 1
    assert len(made.store.contents("lake", "compacted/")) == len(before) + 1


def test_other_bytes_of_the_size_and_crc32_that_s3_copied_are_compacted() -> None:
    made = copied_world()
    name = f"{PARTITION.prefix}0.log.gz"
    before = made.store.contents("source")[name]
    other = stored_in_gzip(b"2026-01-02T03:04:05Z record-00002\n")
    assert (len(other), zlib.crc32(other)) == (len(before), zlib.crc32(before))
    made.store.seed("source", name, other, etag=ETAG)
    made.clock.advance(3_600)
    receipt = made.run()
    assert (receipt.counts.delivered_again, receipt.counts.objects_in) == (0, 1)
    assert sorted(made.store.contents("lake", "compacted/").values()) == sorted([before, other])
    reads = made.store.count("read_source")
    assert made.run().counts.objects_in == 0
    assert made.store.count("read_source") == reads


@pytest.mark.parametrize("name", ["create", "complete_upload", "upload_part"])
def test_two_runs_that_meet_one_content_under_two_etags_compact_it_once(name: str) -> None:
    made = World()
    made.add("0.json", '{{"id": "{}"}}')
    raced = False

    def race(call: Call) -> None:
        nonlocal raced
        if call.name == name and not raced:
            raced = True
            # It was read already, and is not committed yet.
            made.store.seed("source", key(0), bodies[0], etag=ETAG)
            made.clock.advance(7_200)
            made.run()

    made.store.hooks.before.append(race)
    receipt = made.run()
    made.store.hooks.clear()
    assert raced
    assert receipt.status == "done"
    made.must_be_finished()
    assert made.store.unfinished_uploads("lake") == {}


# Clean-up.


def test_what_came_again_is_cleaned_up_after_a_retention_of_its_own() -> None:
    made = world()
    deliver(made, 1, etag=ETAG)
    made.clock.advance(3 * DAY)
    made.run()
    made.clock.advance(4.5 * DAY)
    assert made.clean_up().counts.deleted == 2
    assert list(made.store.contents("source")) == [key(1)]
    made.clock.advance(3 * DAY)
    receipt = made.clean_up()
    assert (receipt.counts.deleted, receipt.counts.commits, receipt.unsafe) == (1, 1, [])
    assert made.store.contents("source") == {}
    made.check()


def test_what_comes_back_with_its_old_etag_is_cleaned_up_again() -> None:
    made = world()
    for _ in range(2):
        made.clock.advance(RETENTION + DAY)
        assert made.clean_up().counts.deleted == 3
        assert made.store.contents("source") == {}
        for number, body in bodies.items():
            deliver(made, number, body)
        receipt = made.run()
        assert receipt.counts.objects_in == 0
        assert receipt.counts.delivered_again == 3
        assert "already_committed" not in receipt.skipped
        made.must_be_finished()


def test_a_run_over_what_came_back_writes_it_down_once() -> None:
    made = world()
    made.clock.advance(RETENTION + DAY)
    made.clean_up()
    deliver(made, 1, bodies[1])
    made.run()
    entries = len(commits(made))
    receipt = made.run()
    assert len(commits(made)) == entries
    assert skipped(receipt) == {"already_committed": (1, ())}


def test_sources_of_this_run_are_never_taken_for_what_came_back() -> None:
    made = world(settle_seconds=0, open_partition_seconds=0)
    for number, name in enumerate(("a.json", "b.csv", "c.json"), start=50):
        body = b"id\n%s\n" if name.endswith("csv") else b'{"id": "%s"}'
        body %= b"record-%d" % number
        made.store.seed("source", PARTITION.prefix + name, body)
        made.records.add(number)
    # A misfit, so that the window is planned twice.
    made.store.seed("source", f"{PARTITION.prefix}d.json", b'{"Records":[{"id":"record-90"}]}')
    made.records.add(90)
    receipt = made.run()
    assert receipt.counts.delivered_again == 0
    assert not any(commit.again for commit in commits(made))


@pytest.mark.parametrize("harm", ["missing", "other bytes"])
def test_what_came_again_stays_while_the_output_that_has_it_is_not_proven(harm: str) -> None:
    made = world()
    (output,) = made.store.contents("lake", "compacted/")
    deliver(made, 1, etag=ETAG)
    made.run()
    made.clock.advance(RETENTION + DAY)
    if harm == "missing":
        made.store.remove("lake", output)
    else:
        made.store.seed("lake", output, b"x" * len(made.store.contents("lake")[output]))
        made.clock.advance(RETENTION + DAY)
    receipt = made.clean_up()
    assert receipt.counts.deleted == 0
    assert len(receipt.unsafe) == 2
    assert output in receipt.unsafe[1]
    assert "its sources stay" in receipt.unsafe[1]


def test_an_entry_that_points_to_no_such_content_deletes_nothing() -> None:
    made = world()
    deliver(made, 1, etag=ETAG)
    made.run()
    forged = commits(made)[0]
    rewrite(made, forged, again=(replace(forged.again[0], crc32=1),))
    made.clock.advance(RETENTION + DAY)
    receipt = made.clean_up()
    assert "commit 1 does not have what came again" in receipt.unsafe[0]
    assert list(made.store.contents("source")) == [key(1)]


# What else reads the log.


def test_restore_gives_what_came_again_from_the_commit_that_has_it() -> None:
    made = world()
    deliver(made, 1, b'{"id": "record-100"}\n')
    made.records.add(100)
    made.run()
    deliver(made, 1, bodies[1], etag=ETAG)
    made.run()
    for etag in (ETAG, None):
        (found,) = find(commits(made), Wanted(frozenset([key(1)]), etag))
        ((_, pieces),) = restore(found, made.store)
        assert b"".join(pieces) == bodies[1]


def test_sources_that_came_again_are_compared_as_well() -> None:
    made = world()
    deliver(made, 1, etag=ETAG)
    made.run()
    log = one_log(made.settings.state, PARTITION.path, made.store)
    checked = Sources(made.settings, made.store).check(commits(made)[0], log)
    assert (checked.equal, checked.changed, checked.missing) == (1, 0, 0)


def test_entries_and_checkpoints_keep_what_is_known_of_contents() -> None:
    made = world()
    deliver(made, 0, etag=ETAG)
    deliver(made, 1, b'{"id": "record-100"}\n')
    made.run()
    for commit in commits(made):
        assert decode_commit(encode_commit(commit)) == commit
    state = CommitLog(made.store, made.settings, PARTITION).load()
    again = decode_checkpoint(encode_checkpoint(state))
    assert again.contents.to_bytes() == state.contents.to_bytes() != b""
    assert again.runs["run-2"] == state.runs["run-2"]
    (source,) = (row.source for row in commits(made)[0].rows)
    assert len(again.contents.marks(source)) == 2


def test_what_a_void_commit_names_was_not_compacted() -> None:
    made = world()
    state = CommitLog(made.store, made.settings, PARTITION).load()
    (commit,) = commits(made)
    fresh = type(state)()
    fresh.add(commit)
    source = commit.rows[0].source
    assert fresh.contents.marks(source)
    fresh.add(voided(commit))
    assert not fresh.contents.marks(source)
    assert source.identity not in fresh.committed


def voided(commit: Commit) -> Commit:
    return replace(commit.voided("run-9"), sequence=2)


def test_settings_do_not_change_what_came_again() -> None:
    made = world()
    made.settings = Settings.from_input({**made.settings.to_dict(), "compression": "gzip"})
    deliver(made, 1, etag=ETAG)
    assert made.run().counts.delivered_again == 1
    made.must_be_finished()


# A bucket that was copied.


def copied(made: World, **given: object) -> Receipt:
    """What becomes of the same keys in another bucket."""
    ages = {"settle_seconds": 0, "open_partition_seconds": 0}
    wanted = settings(s3_source_uri="s3://copy/logs/", **ages, **given)
    partition = replace(PARTITION, bucket="copy")
    run = PartitionRun(partition, wanted, made.store, made.clock, NoDeadline(), "of-the-copy")
    return record_partition(run, Counts())


def copy_of(made: World, **changed: bytes) -> None:
    made.store.add_bucket("copy")
    for name, body in made.store.contents("source").items():
        made.store.seed("copy", name, changed.get(name.rpartition("/")[2][0], body))


def test_objects_of_a_copied_bucket_are_refused_by_a_line_that_names_the_setting() -> None:
    made = world()
    copy_of(made, **{"0": b'{"id": "record-77"}'})
    before = made.store.contents("lake", "compacted/")
    said = r"2 of 3 sources, such as s3://copy/logs/.*1.json, .* from s3://source/.* bucket_copies"
    with pytest.raises(InvalidInput, match=said):
        copied(made)
    assert made.store.contents("lake", "compacted/") == before
    assert made.destination().total() == 9


def test_they_are_compacted_where_both_are_meant() -> None:
    made = world()
    copy_of(made)
    assert copied(made, bucket_copies="compact").counts.objects_in == 3
    assert set(made.destination().values()) == {2}


def test_other_contents_and_empty_objects_of_the_same_keys_are_no_copy() -> None:
    made = world()
    made.put("empty.json", b"")
    made.run()
    copy_of(
        made, **{str(number): f'{{"id": "record-{70 + number}"}}'.encode() for number in range(3)}
    )
    assert copied(made).status == "done"
    assert made.destination().total() == 12


def test_a_copy_is_known_before_there_is_a_checkpoint() -> None:
    made = World()
    made.add("0.json", '{{"id": "{}"}}')
    made.store.hooks.crash(
        "before",
        "create",
        prefix="_compactor/compacted/partitions/2026/01/02/commits/00000000000000000001.checkpoint",
    )
    with pytest.raises(Crashed):
        made.run()
    made.store.hooks.clear()
    copy_of(made)
    with pytest.raises(InvalidInput, match="bucket_copies"):
        copied(made)
