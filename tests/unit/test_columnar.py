"""Outputs that hold rows: what the log, verification, restore and clean-up make of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compactor.errors import IntegrityError, InvalidInput
from compactor.formats import framer_for
from compactor.log.encoding import decode_commit, encode_commit
from compactor.log.entries import Columnar, Commit, DeadLetters, Output
from compactor.log.log import CommitLog
from compactor.log.manifest import ManifestRow, SliceFacts
from compactor.model import Compression, Format, Signature
from compactor.outputs.pending import PendingOutput
from compactor.outputs.publish import publish
from compactor.outputs.restore import Wanted, find, restore
from compactor.outputs.verify import check_commit, check_heads, check_pending
from compactor.partition.receipts import Receipt, count_commits
from compactor.planning.packing import make_group
from tests.support.examples import NOW, PARTITION, settings
from tests.support.parquet_example import PARQUET
from tests.support.world import World

DEAD_KEY = "_compactor/compacted/partitions/2026/01/02/dead-letters/one.json"
DEAD = b'{"source": "s3://source/logs/2026/01/02/b.json", "record": "x", "reason": "y"}\n'


class RowWorld(World):
    """Two sources whose four records became three rows and one dead-letter record."""

    def __init__(self, **given: Any) -> None:
        super().__init__(output_format="parquet", **given)
        self.add("a.json", '{{"id": "{}"}}', records=2)
        self.add("b.json", '{{"id": "{}"}}', records=2)
        self.log = CommitLog(self.store, self.settings, PARTITION)

    def pending(self, **changed: Any) -> PendingOutput:
        (page,) = self.store.list_objects("source", "")
        group = make_group(page, self.settings)
        dead = DeadLetters("lake", DEAD_KEY, len(DEAD), zlib.crc32(DEAD), 1)
        columnar = Columnar(4, 3, "0" * 16, "0" * 16, "gzip", "{}", dead)
        key = f"compacted/2026/01/02/compacted-{group.id}.parquet"
        upload_id = self.store.create_upload("lake", key)
        part = self.store.upload_part("lake", key, upload_id, 1, PARQUET)
        self.store.put("lake", DEAD_KEY, DEAD)
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

    def published(self, **changed: Any) -> Commit:
        state = self.log.load()
        commit = self.log.append(state, self.pending(**changed).draft("run-1", NOW))
        publish(commit, self.store)
        state.mark_published(commit)
        self.log.checkpoint(state)
        return commit


def test_a_commit_of_rows_is_the_same_after_the_log() -> None:
    commit = RowWorld().published()
    decoded = decode_commit(encode_commit(commit))
    assert decoded.output == commit.output
    assert [row.facts for row in decoded.rows] == [SliceFacts(2), SliceFacts(2)]


def test_dead_letter_records_are_counted_through_checkpoints() -> None:
    world = RowWorld()
    world.published()
    receipt = Receipt("", "run-1", "done")
    count_commits(receipt, world.log.load().totals("run-1"))
    counts = receipt.counts
    assert (counts.records, counts.dead_letters, counts.objects_out) == (3, 1, 1)


def test_rows_that_balance_pass_before_the_commit() -> None:
    pending = RowWorld().pending()
    check_pending(pending)
    assert len(pending.rows) == 2


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"rows_in": 5}, "5 rows in, 3 out and 1 that fit no row"),
        ({"dead_letters": None}, "4 rows in, 3 out and 0 that fit no row"),
        ({"hash_out": "f" * 16}, "the hash of the rows was 0000000000000000"),
        ({"rows_in": 3, "rows_out": 2}, r"rows of s3://lake/\S+: 3, expected 2"),
        ({"rows_in": 3, "dead_letters": None}, "rows of all sources: 4, expected 3"),
    ],
)
def test_rows_that_do_not_balance_are_never_committed(changed: dict[str, Any], told: str) -> None:
    pending = RowWorld().pending(**changed)
    with pytest.raises(IntegrityError, match=told):
        check_pending(pending)


def test_an_output_of_rows_and_its_dead_letter_records_pass_when_they_are_read_again() -> None:
    world = RowWorld()
    assert check_commit(world.published(), world.store) == 3


def _other_bytes(world: RowWorld, output: Output) -> None:
    changed = PARQUET[:50] + bytes([PARQUET[50] ^ 1]) + PARQUET[51:]
    world.store.seed("lake", output.key, changed)


def _no_output(world: RowWorld, output: Output) -> None:
    world.store.remove("lake", output.key)


def _no_letters(world: RowWorld, output: Output) -> None:
    world.store.remove("lake", DEAD_KEY)


def _other_letters(world: RowWorld, output: Output) -> None:
    world.store.seed("lake", DEAD_KEY, DEAD.replace(b"x", b"z"))


@pytest.mark.parametrize("damage", [_other_bytes, _no_output, _no_letters, _other_letters])
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


def test_clean_up_deletes_neither_dead_letter_records_nor_their_sources() -> None:
    world = RowWorld(delete_after="0d")
    commit = world.published()
    receipt = world.clean_up()
    assert (receipt.status, receipt.unsafe, receipt.counts.deleted) == ("done", [], 1)
    assert receipt.warnings == ["sources with dead-letter records stay: these are in no output"]
    (page,) = world.store.list_objects("source", "")
    assert [one.key for one in page] == [f"{PARTITION.prefix}b.json"]
    assert world.store.get("lake", DEAD_KEY) == DEAD
    assert DEAD_KEY in check_heads(commit, world.store)
    world.store.remove("lake", DEAD_KEY)
    assert world.clean_up().counts.deleted == 0, "the commit is finished"


def test_all_sources_of_rows_alone_are_cleaned_up() -> None:
    world = RowWorld(delete_after="0d")
    world.published(rows_in=3, dead_letters=None)
    assert world.clean_up().counts.deleted == 2
    assert not world.sources()


@pytest.mark.parametrize("changed", [{"rows_in": 5}, {"hash_out": "f" * 16}, {"rows_out": 4}])
def test_sources_of_rows_that_do_not_balance_stay(changed: dict[str, Any]) -> None:
    world = RowWorld(delete_after="0d")
    world.published(**changed)
    result = world.clean_up()
    assert result.counts.deleted == 0
    assert len(result.unsafe) == 1
    assert result.unsafe[0].endswith("its sources stay")


@pytest.mark.parametrize("damage", [_no_letters, _other_letters, _no_output])
def test_sources_stay_when_what_replaces_them_is_gone(
    damage: Callable[[RowWorld, Output], None],
) -> None:
    world = RowWorld(delete_after="0d")
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
    with pytest.raises(InvalidInput, match="formats: 'parquet' is not accepted"):
        framer_for(Signature(Format.PARQUET, Compression.NONE))
