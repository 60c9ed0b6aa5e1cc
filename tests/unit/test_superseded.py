"""No file that a table is made of has the tag; what a rewrite replaced has it until VACUUM."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from compactor.errors import InvalidInput
from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_tables import superseded
from compactor_tables.maintenance_receipts import DONE, MaintenanceReceipt, RewrittenPartition
from compactor_tables.policies import read_policies
from compactor_tables.superseded import Live, SupersededFiles
from tests.support.memory_store import Call, Crashed, ManualClock, MemoryStore

pytest.importorskip("deltalake")

from compactor_tables.metadata.delta_files import DeltaFiles, mark_superseded
from tests.support.delta_lake import BUCKET, PREFIX, TABLE, DeltaLake

STATE = parse_location("s3://lake/_maintenance/")


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    lake = DeltaLake(tmp_path, MemoryStore(ManualClock(1_700_000_000.0)))
    lake.append()
    return lake


def files_of(lake: DeltaLake) -> SupersededFiles:
    """As another process has them, which knows nothing."""
    return SupersededFiles(STATE, TABLE, lake.store, DeltaFiles(TABLE, lake.store))


def data(lake: DeltaLake) -> set[str]:
    return {key for key in lake.store.contents(BUCKET, PREFIX) if key.endswith(".parquet")}


def once(name: str, act: Callable[[], object]) -> Callable[[Call], None]:
    """Something that somebody does right before the first request of this name."""
    left = [act]

    def hook(call: Call) -> None:
        if call.name == name and left:
            left.pop()()

    return hook


def test_what_a_rewrite_replaced_is_tagged_and_nothing_else(lake: DeltaLake) -> None:
    old = lake.alive
    told = files_of(lake).tag(lake.rewrite())
    assert len(old) == 6
    assert lake.tagged == old
    assert lake.tagged.isdisjoint(lake.alive)
    assert (told.tagged, told.untagged, told.alive) == (6, 0, 0)


def test_a_repeated_step_changes_nothing(lake: DeltaLake) -> None:
    receipt = lake.rewrite()
    files_of(lake).tag(receipt)
    puts = lake.store.count("put_tags")
    assert files_of(lake).tag(receipt).tagged == 0
    assert lake.store.count("put_tags") == puts


def test_what_another_writer_deleted_is_not_ours_to_tag(lake: DeltaLake) -> None:
    lake.rewrite()
    lake.delete(0)
    receipt = lake.rewrite()
    # As if ours had made that version: it says itself that it changed data.
    receipt.partitions.clear()
    receipt.partitions.append(RewrittenPartition(name="", status=DONE, after=str(lake.version)))
    files_of(lake).tag(receipt)
    assert lake.tagged == set()


def test_uris_of_a_receipt_count_where_they_are_of_this_table(lake: DeltaLake) -> None:
    receipt = lake.rewrite()
    dead = sorted(data(lake) - lake.alive)
    receipt.partitions.clear()
    receipt.superseded = [
        f"s3://{BUCKET}/{dead[0]}",
        f"s3a://{BUCKET}/{dead[1]}",
        f"s3://other/{dead[2]}",
        f"s3://{BUCKET}/gold/customers/x.parquet",
        f"s3://{BUCKET}/{PREFIX}_delta_log/{0:020d}.json",
        f"s3://{BUCKET}/{PREFIX}part=x/vacuumed.parquet",
        f"s3://{BUCKET}/{sorted(lake.alive)[0]}",
    ]
    lake.store.seed(BUCKET, "gold/customers/x.parquet", b"x")
    told = files_of(lake).tag(receipt)
    assert lake.tagged == set(dead[:2])
    assert (told.tagged, told.gone, told.alive) == (2, 1, 1)
    assert lake.store.tags(BUCKET, "gold/customers/x.parquet") == {}


def test_the_owners_own_tags_stay(lake: DeltaLake) -> None:
    first, second, third, *_ = sorted(lake.alive)
    full = {f"tag-{n}": "x" for n in range(10)}
    lake.store.put_tags(BUCKET, first, {"team": "ops"})
    lake.store.put_tags(BUCKET, second, full)
    lake.store.put_tags(BUCKET, third, {"s3-compactor": "kept by hand"})
    receipt = lake.rewrite()
    told = files_of(lake).tag(receipt)
    assert lake.store.tags(BUCKET, first) == {"team": "ops", "s3-compactor": "superseded"}
    assert lake.store.tags(BUCKET, second) == full
    assert told.full == 1
    files_of(lake).untag_all()
    assert lake.store.tags(BUCKET, first) == {"team": "ops"}
    assert lake.tagged == set()


def test_what_somebodys_restore_brought_back_is_untagged_by_the_next_run(lake: DeltaLake) -> None:
    receipt = lake.rewrite()
    files_of(lake).tag(receipt)
    lake.restore(int(receipt.undo))
    assert lake.tagged == lake.alive
    lake.append(1)
    next_one = lake.rewrite()
    lake.restore(int(next_one.undo))
    told = files_of(lake).tag(next_one)
    assert told.untagged == 6
    assert lake.tagged.isdisjoint(lake.alive)


def test_a_restore_meanwhile_is_seen_after_the_batch(lake: DeltaLake) -> None:
    receipt = lake.rewrite()
    lake.store.hooks.before.append(once("put_tags", lambda: lake.restore(int(receipt.undo))))
    told = files_of(lake).tag(receipt)
    assert told.untagged == 6
    assert lake.tagged == set()
    assert len(lake.alive) == 6


def test_a_restore_before_a_batch_leaves_its_files_out(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(superseded, "_BATCH", 2)
    monkeypatch.setattr(superseded, "_CONCURRENT", 1)
    receipt = lake.rewrite()
    lake.store.hooks.after.append(once("put_tags", lambda: lake.restore(int(receipt.undo))))
    told = files_of(lake).tag(receipt)
    assert (told.tagged, told.untagged, told.alive) == (2, 2, 4)
    assert lake.tagged == set()


@pytest.mark.parametrize("nth", range(1, 7))
def test_what_a_killed_step_tagged_is_found_by_the_next_one(lake: DeltaLake, nth: int) -> None:
    receipt = lake.rewrite()
    lake.store.hooks.crash("after", "put_tags", nth=nth)
    with pytest.raises(Crashed):
        files_of(lake).tag(receipt)
    lake.store.hooks.clear()
    lake.restore(int(receipt.undo))
    assert lake.tagged
    files_of(lake).tag(receipt)
    assert lake.tagged == set()


def test_before_our_own_restore_everything_is_untagged(lake: DeltaLake) -> None:
    receipt = lake.rewrite()
    files_of(lake).tag(receipt)
    assert files_of(lake).untag_all().untagged == 6
    lake.restore(int(receipt.undo))
    assert lake.tagged == set()


def test_what_vacuum_took_is_forgotten(lake: DeltaLake) -> None:
    files_of(lake).tag(lake.rewrite())
    assert files_of(lake).forget_vacuumed() == 0
    lake.vacuum()
    lake.append()
    files_of(lake).tag(lake.rewrite())
    assert files_of(lake).forget_vacuumed() == 1
    assert list(lake.store.contents(BUCKET, STATE.prefix)) == [
        key for key in lake.store.contents(BUCKET, STATE.prefix) if key.endswith("run-2.json")
    ]


def test_a_run_tags_where_the_rule_of_the_table_wants_it(lake: DeltaLake) -> None:
    receipt = lake.rewrite()
    silent, wanted = read_policies(
        [{"match": ["a.*"]}, {"match": ["*"], "tag_superseded": True}]
    ).rules
    assert mark_superseded(STATE, receipt, silent, lake.store) is None
    assert lake.tagged == set()
    told = mark_superseded(STATE, receipt, wanted, lake.store)
    assert told is not None
    assert (told.tagged, len(lake.tagged)) == (6, 6)
    lake.vacuum()
    receipt.deleted_files = 6
    mark_superseded(STATE, receipt, wanted, lake.store)
    assert lake.store.contents(BUCKET, STATE.prefix) == {}
    iceberg = MaintenanceReceipt(table="glue:gold.orders", run_id="r", engine="spark")
    assert mark_superseded(STATE, iceberg, wanted, lake.store) is None


def test_only_a_delta_table_has_such_files() -> None:
    with pytest.raises(InvalidInput, match="a Delta table"):
        DeltaFiles(parse_table("glue:gold.orders"), MemoryStore())


def test_the_log_is_replayed_only_where_it_has_gone_on(lake: DeltaLake) -> None:
    files = DeltaFiles(TABLE, lake.store)
    assert files.current().keys >= lake.alive
    gets = lake.store.count("get")
    assert files.current().version == lake.version
    assert lake.store.count("get") == gets
    lake.append(1)
    assert files.current().keys >= lake.alive
    assert files.current().version == lake.version


# What people and runs do, one after the other; numbers choose a version, or a moment.
STEPS = st.lists(
    st.one_of(
        st.just(("append", 0)),
        st.tuples(st.just("delete"), st.integers(0, 5)),
        st.tuples(st.just("restore"), st.integers(0, 20)),
        st.tuples(st.just("run"), st.integers(0, 20)),
        st.tuples(st.just("killed run"), st.integers(1, 6)),
        st.tuples(st.just("run, restored meanwhile"), st.integers(0, 20)),
        st.just(("again", 0)),
        st.just(("undo", 0)),
        st.just(("vacuum", 0)),
    ),
    min_size=3,
    max_size=8,
)


class Story:
    """A table whose versions go back and forth."""

    def __init__(self, directory: Path) -> None:
        self.lake = DeltaLake(directory, MemoryStore(ManualClock(1_700_000_000.0)))
        self.lake.append()
        self.receipt = self.lake.rewrite()
        self.lake.append()

    def tell(self, steps: Iterable[tuple[str, int]]) -> None:
        for step, number in steps:
            self.take(step, number)
        self.run("run", 0, 0)

    def take(self, step: str, number: int) -> None:
        lake, version = self.lake, number % (self.lake.version + 1)
        if step == "append":
            lake.append(1)
        elif step == "delete":
            lake.delete(number)
        elif step == "restore":
            lake.restore(version)
        elif step == "vacuum":
            lake.vacuum()
        elif step == "undo":
            files_of(lake).untag_all()
            lake.restore(max(0, lake.version - 1))
            self.check()
        else:
            self.run(step, version, number)

    def run(self, step: str, version: int, number: int) -> None:
        receipt = self.receipt if step == "again" else self.lake.rewrite()
        self.receipt = receipt
        if step == "killed run":
            self.lake.store.hooks.crash("after", "put_tags", nth=number)
        elif step == "run, restored meanwhile":
            hook = once("put_tags", lambda: self.lake.restore(version))
            self.lake.store.hooks.before.append(hook)
        files = files_of(self.lake)
        if step in {"run", "again"}:
            files = self._nobody_else(files)
        try:
            files.tag(receipt)
        except Crashed:
            self.lake.store.hooks.clear()
            return
        self.lake.store.hooks.clear()
        self.check()

    def _nobody_else(self, files: SupersededFiles) -> SupersededFiles:
        """While nobody else is at work, no live file has the tag even for a moment."""
        alive = self.lake.alive

        class Watched(SupersededFiles):
            def _tag_one(self, key: str) -> str:
                assert key not in alive
                return super()._tag_one(key)

        return Watched(files.state, files.table, files.store, files.files)

    def check(self) -> None:
        alive, tagged = self.lake.alive, self.lake.tagged
        assert alive.isdisjoint(tagged), alive & tagged


# Each failed once.
@example([("append", 0), ("again", 0), ("run, restored meanwhile", 0)])
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_whatever_happens_no_step_ends_with_a_tag_on_a_file_that_is_alive(steps: Any) -> None:
    with TemporaryDirectory() as directory:
        Story(Path(directory)).tell(steps)


# Each takes one guard away, and names a story that ends badly without it.
# Version 4 is what the table is at first.
MUTANTS = {
    "left out": [("run", 0), ("restore", 4), ("again", 0)],
    "untagged after": [("run, restored meanwhile", 4)],
    "untagged first": [("run", 0), ("restore", 4), ("again", 0)],
    "written down": [("killed run", 3), ("restore", 4), ("again", 0)],
    "untagged before undo": [("run", 0), ("undo", 0)],
}


def _remove(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    untag_again = SupersededFiles._untag_again

    def all_of_them(self: SupersededFiles, keys: Any) -> Any:
        return keys

    def nothing(self: SupersededFiles, *_: Any) -> None:
        return None

    def only(self: SupersededFiles, seen: Live | None, told: Any) -> Live:
        if (seen is None) == (guard == "untagged after"):
            return untag_again(self, seen, told)
        return self.files.current()

    name, instead = {
        "left out": ("_dead", all_of_them),
        "written down": ("_note", nothing),
        "untagged before undo": ("untag_all", nothing),
    }.get(guard, ("_untag_again", only))
    monkeypatch.setattr(SupersededFiles, name, instead)


@pytest.mark.parametrize("guard", MUTANTS)
def test_without_one_of_the_guards_a_live_file_gets_or_keeps_its_tag(
    guard: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(tmp_path)
    _remove(guard, monkeypatch)
    with pytest.raises(AssertionError):
        story.tell(MUTANTS[guard])


@pytest.mark.parametrize("name", MUTANTS)
def test_with_all_guards_these_stories_end_well(name: str, tmp_path: Path) -> None:
    Story(tmp_path).tell(MUTANTS[name])
