"""Outputs that hold rows: what the log, verification, restore and clean-up make of them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from compactor import layout
from compactor.cleaning.clean_partition import record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.discovery.rejected import with_rejected
from compactor.discovery.work_items import Discovery
from compactor.errors import CommitConflict, IntegrityError, InvalidInput
from compactor.formats import framer_for
from compactor.log.columnar import Columnar, Rejects
from compactor.log.encoding import decode_commit, encode_commit
from compactor.log.entries import Commit, Output
from compactor.log.log import CommitLog
from compactor.log.log_reader import all_logs
from compactor.log.manifest import ManifestRow
from compactor.log.rejects import RejectsSeen, Waiting, describe
from compactor.log.slice_facts import SliceFacts
from compactor.model import Compression, Format, ObjectGroup, Signature
from compactor.outputs.pending import PendingOutput
from compactor.outputs.publish import publish
from compactor.outputs.restore import Wanted, find, restore
from compactor.outputs.verify import check_commit, check_heads, check_pending
from compactor.planning.packing import make_group
from compactor.runs.partition_receipts import Counts, count_commits
from tests.support.examples import NOW, PARTITION, settings
from tests.support.parquet_example import PARQUET
from tests.support.world import World

REJECTS_KEY = "_compactor/compacted/partitions/2026/01/02/rejects/one.json"
REJECTS = b'{"source": "s3://source/a.json", "record": "x", "reason": "y"}\n'


class RowWorld(World):
    """Two sources whose four records became three rows and one reject."""

    def __init__(self, **given: Any) -> None:
        super().__init__(output_format="parquet", **given)
        self.add("a.json", '{{"id": "{}"}}', records=2)
        self.add("b.json", '{{"id": "{}"}}', records=2)
        self.log = CommitLog(self.store, self.settings, PARTITION)

    def pending(self, **changed: Any) -> PendingOutput:
        (page,) = self.store.list_objects("source", "")
        group = make_group(page, self.settings)
        rejects = Rejects("lake", REJECTS_KEY, len(REJECTS), zlib.crc32(REJECTS), 1)
        columnar = Columnar(4, 3, "0" * 16, "0" * 16, "gzip", "{}", rejects)
        key = f"compacted/2026/01/02/compacted-{group.id}.parquet"
        upload_id = self.store.create_upload("lake", key)
        part = self.store.upload_part("lake", key, upload_id, 1, PARQUET)
        self.store.put("lake", REJECTS_KEY, REJECTS)
        output = Output(
            bucket="lake",
            key=key,
            upload_id=upload_id,
            parts=(part,),
            size=len(PARQUET),
            crc32=zlib.crc32(PARQUET),
            plain_bytes=None,
            records=3,
            format=Format.PARQUET,
            compression=Compression.NONE,
            columnar=replace(columnar, **changed),
        )
        rows = tuple(ManifestRow(source, 0, 0, None, None, SliceFacts(2)) for source in page)
        return PendingOutput(group=group, output=output, rows=rows)

    def waiting(self) -> list[Waiting]:
        return self.log.load().rejects.in_order

    def published(self, **changed: Any) -> Commit:
        state = self.log.load()
        commit = self.log.append(state, self.pending(**changed).draft("run-1", NOW))
        publish(commit, self.store)
        return commit


def test_a_commit_of_rows_is_the_same_after_the_log() -> None:
    commit = RowWorld().published()
    decoded = decode_commit(encode_commit(commit))
    assert decoded.output == commit.output
    assert [row.facts for row in decoded.rows] == [SliceFacts(2), SliceFacts(2)]


def test_rejected_records_are_counted_through_checkpoints() -> None:
    world = RowWorld()
    world.published()
    state = world.log.load()
    for commit in list(state.unpublished.values()):
        state.mark_published(commit)
    world.log.checkpoint(state)
    counts = Counts()
    count_commits(counts, world.log.load(), "run-1")
    assert (counts.records, counts.rejected, counts.objects_out) == (3, 1, 1)


def replay_of(world: RowWorld, *, rejects: Rejects | None = None, run_id: str = "run-2") -> Commit:
    """A draft that takes over the rejects of the first entry, and holds what fits of them."""
    (waiting,) = world.waiting()
    facts = SliceFacts(waiting.rejects.records)
    rows = (ManifestRow(waiting.source, 0, 0, None, None, facts),)
    pending = world.pending(rows_in=1, rows_out=1 - (rejects is not None), rejects=rejects)
    output = pending.output
    assert output is not None
    key = output.key.replace(".parquet", f"-{run_id}.parquet")
    upload_id = world.store.create_upload("lake", key)
    part = world.store.upload_part("lake", key, upload_id, 1, PARQUET)
    output = replace(output, key=key, upload_id=upload_id, parts=(part,), records=1)
    draft = pending.draft(run_id, NOW)
    return replace(draft, source_bucket="lake", output=output, rows=rows, replays=True)


def test_rejects_wait_until_an_entry_takes_them_over_and_again_when_it_is_void() -> None:
    world = RowWorld()
    world.published()
    state = world.log.load()
    state.mark_published(state.unpublished[1])
    world.log.checkpoint(state)
    assert world.waiting() == state.rejects.in_order
    assert [one.sequence for one in world.waiting()] == [1]

    commit = world.log.append(state := world.log.load(), replay_of(world))
    assert world.waiting() == []
    assert commit.replays
    assert state.totals("run-2").replayed == 1
    assert (state.totals("run-2").sources, state.totals("run-2").rejected) == (0, 0)
    world.log.append(state, commit.voided("run-3"))
    assert [one.sequence for one in world.waiting()] == [1], "nobody has its records"
    assert state.totals("run-2").replayed == 0

    world.log.append(state, replay_of(world, run_id="run-4"))
    for one in list(state.unpublished.values()):
        publish(one, world.store)
        state.mark_published(one)
    world.log.checkpoint(state)
    assert world.waiting() == []
    assert world.store.get("lake", REJECTS_KEY) == REJECTS, "nobody deletes them"


@pytest.mark.parametrize("fits", [True, False])
def test_a_worker_replays_rejects_before_its_first_window(
    fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = RowWorld()
    world.published()
    waiting = world.waiting()
    asked: list[Sequence[Waiting]] = []

    def store(group: ObjectGroup, *_: Any, replays: Sequence[Waiting], **__: Any) -> PendingOutput:
        asked.append(replays)
        if not fits:
            return PendingOutput(group=group, output=None, rows=(), later=group.sources)
        draft = replay_of(world)
        return PendingOutput(group=group, output=draft.output, rows=draft.rows, replays=True)

    monkeypatch.setattr("compactor.runs.group_work.store", store)
    receipt = world.run()
    assert asked == [tuple(waiting)]
    assert (receipt.status, receipt.counts.replayed) == ("done", int(fits))
    assert world.waiting() == ([] if fits else waiting)


def test_of_two_workers_that_take_rejects_over_one_is_refused() -> None:
    world = RowWorld()
    world.published()
    mine, theirs = world.log.load(), world.log.load()
    drafts = [replay_of(world, run_id=run) for run in ("mine", "theirs")]
    # A run that is late stores the same rejects again: with KMS, they get another ETag.
    world.store.put("lake", REJECTS_KEY, REJECTS)
    world.log.append(theirs, drafts[1])
    with pytest.raises(CommitConflict):
        world.log.append(mine, drafts[0])


def test_rejects_of_a_replay_wait_in_their_turn() -> None:
    world = RowWorld()
    world.published()
    left = Rejects("lake", REJECTS_KEY.replace("one", "two"), len(REJECTS), zlib.crc32(REJECTS), 1)
    world.log.append(world.log.load(), replay_of(world, rejects=left))
    assert [one.rejects for one in world.waiting()] == [left]
    seen = RejectsSeen()
    (log,) = all_logs(world.settings.state, world.store)
    for commit in log.newest_first(world.store):
        seen.add(commit)
    assert seen.waiting == [left]
    assert describe(seen.waiting).startswith(
        "1 rejected record in no output: see s3://lake/_compactor"
    )


def test_a_partition_without_sources_is_worked_on_while_its_rejects_may_fit() -> None:
    world = RowWorld()
    world.published()
    given, store, nothing = world.settings, world.store, Discovery()

    def pin(number: int, **schema: Any) -> None:
        document = {"version": 1, "schema": schema}
        store.seed(*layout.parquet_schema_key(given, number), json.dumps(document).encode())

    pin(1)
    assert with_rejected(nothing, given, store) == nothing, "its columns are the only ones so far"
    pin(2, fields=[])
    found = with_rejected(nothing, given, store)
    assert [one.path for one in found.items] == [PARTITION.path]
    assert with_rejected(found, given, store) == found
    by_spark = with_rejected(nothing, replace(given, engine="spark"), store)
    assert [one.path for one in by_spark.oversized] == [PARTITION.path]
    assert with_rejected(nothing, settings(format="parquet"), store) == nothing
    pin(3)
    assert with_rejected(nothing, given, store) == nothing, "the columns that they did not fit"
    pin(4, fields=[])
    world.log.append(world.log.load(), replay_of(world))
    assert with_rejected(nothing, given, store) == nothing


def test_clean_up_deletes_neither_rejects_nor_what_a_replay_names() -> None:
    world = RowWorld(clean_up="delete", retention_days=1)
    world.published()
    commit = world.log.append(state := world.log.load(), replay_of(world))
    for one in list(state.unpublished.values()):
        publish(one, world.store)
        state.mark_published(one)
    world.clock.advance(9 * 86_400)
    receipt = record_clean_up(run := world.clean_up_run(), CleanUpReceipt(run.path, run.run_id))
    assert (receipt.status, receipt.unsafe, receipt.counts.deleted) == ("done", [], 2)
    assert world.store.get("lake", REJECTS_KEY) == REJECTS
    assert REJECTS_KEY not in check_heads(commit, world.store)


def test_rows_that_balance_pass_before_the_commit() -> None:
    pending = RowWorld().pending()
    check_pending(pending)
    assert len(pending.rows) == 2


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"rows_in": 5}, "5 rows in, 3 out and 1 rejected"),
        ({"rejects": None}, "4 rows in, 3 out and 0 rejected"),
        ({"hash_out": "f" * 16}, "the hash of the rows was 0000000000000000"),
        ({"rows_in": 3, "rows_out": 2}, "rows of the output: 3, expected 2"),
        ({"rows_in": 3, "rejects": None}, "rows of all sources: 4, expected 3"),
    ],
)
def test_rows_that_do_not_balance_are_never_committed(changed: dict[str, Any], told: str) -> None:
    pending = RowWorld().pending(**changed)
    with pytest.raises(IntegrityError, match=told):
        check_pending(pending)


def test_an_output_of_rows_and_its_rejects_pass_when_they_are_read_again() -> None:
    world = RowWorld()
    assert check_commit(world.published(), world.store) == 3


def _other_bytes(world: RowWorld, output: Output) -> None:
    changed = PARQUET[:50] + bytes([PARQUET[50] ^ 1]) + PARQUET[51:]
    world.store.seed("lake", output.key, changed)


def _no_output(world: RowWorld, output: Output) -> None:
    world.store.remove("lake", output.key)


def _no_rejects(world: RowWorld, output: Output) -> None:
    world.store.remove("lake", REJECTS_KEY)


def _other_rejects(world: RowWorld, output: Output) -> None:
    world.store.seed("lake", REJECTS_KEY, REJECTS.replace(b"x", b"z"))


@pytest.mark.parametrize("damage", [_other_bytes, _no_output, _no_rejects, _other_rejects])
def test_damage_is_found_when_they_are_read_again(
    damage: Callable[[RowWorld, Output], None],
) -> None:
    world = RowWorld()
    commit = world.published()
    assert commit.output is not None
    damage(world, commit.output)
    with pytest.raises(IntegrityError, match="s3://lake/"):
        check_commit(commit, world.store)


def test_a_source_whose_rows_alone_are_left_cannot_be_restored() -> None:
    world = RowWorld()
    world.published()
    key = f"{PARTITION.prefix}a.json"
    (found,) = find(world.log.every_commit(), Wanted(frozenset({key})))
    with pytest.raises(InvalidInput) as refused:
        list(restore(found, world.store))
    said = str(refused.value)
    assert said.startswith(f"KEY: {key!r} is not accepted")
    assert "holds its rows, not its bytes (the original stays until clean-up)" in said


def test_sources_of_rows_that_balance_are_cleaned_up() -> None:
    world = RowWorld(clean_up="delete", retention_days=0)
    world.published()
    assert world.clean_up().counts.deleted == 2
    assert not world.sources()


@pytest.mark.parametrize("changed", [{"rows_in": 5}, {"hash_out": "f" * 16}, {"rows_out": 4}])
def test_sources_of_rows_that_do_not_balance_stay(changed: dict[str, Any]) -> None:
    world = RowWorld(clean_up="delete", retention_days=0)
    world.published(**changed)
    result = world.clean_up()
    assert result.counts.deleted == 0
    assert len(result.unsafe) == 1
    assert result.unsafe[0].endswith("its sources stay")


@pytest.mark.parametrize("damage", [_no_rejects, _no_output])
def test_sources_stay_when_what_replaces_them_is_gone(
    damage: Callable[[RowWorld, Output], None],
) -> None:
    world = RowWorld(clean_up="delete", retention_days=0)
    commit = world.published()
    assert commit.output is not None
    damage(world, commit.output)
    assert len(world.clean_up().unsafe) == 1
    assert sum(world.sources().values()) == 4


def test_a_worker_without_spark_voids_a_lost_output_of_rows_and_plans_its_sources_again() -> None:
    world = RowWorld()
    state = world.log.load()
    draft = world.pending().draft("run-0", NOW)
    assert draft.output is not None
    world.log.append(state, draft)
    world.store.abort_upload("lake", draft.output.key, draft.output.upload_id)
    world.settings = settings()
    assert world.run().counts.objects_in == 2
    assert [commit.replaces for commit in world.log.every_commit()] == [None, 1]
    world.must_be_finished()


def test_parquet_is_never_joined_byte_by_byte() -> None:
    with pytest.raises(InvalidInput, match="format: 'parquet' is not accepted"):
        framer_for(Signature(Format.PARQUET, Compression.NONE))
