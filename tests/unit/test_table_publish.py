"""Outputs go into a table, each once, whatever is lost on the way and whatever else is at work."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compactor.errors import (
    IntegrityError,
    InvalidInput,
    TableConflict,
    TransientStoreError,
)
from compactor.log.encoding import decode_commit, encode_commit
from compactor.log.entries import Commit
from compactor.log.log_reader import read_entry
from compactor.orchestration.partition_retry import RETRIES
from compactor.sinks.table_catalog import TableState
from compactor.sinks.table_entries import NamedOutput, Reached
from compactor.sinks.table_log import Draft, TableLog
from compactor.sinks.table_publisher import check_table
from compactor.sinks.table_receipts import read_receipt
from tests.support.examples import PARTITION
from tests.support.memory_store import Call, Crashed
from tests.support.memory_tables import ADDRESS, IcebergTable, MemoryCatalog, unanswered
from tests.support.table_world import KINDS, Tables


class Time:
    """So many requests of the table before time is up."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def remaining_seconds(self) -> float:
        return self.seconds


@pytest.fixture(params=sorted(KINDS))
def tables(request: pytest.FixtureRequest) -> Tables:
    return Tables(request.param)


def answers(tables: Tables, name: str, *acts: Callable[[Callable[[], object]], object]) -> None:
    """What becomes of the first requests of this name; later ones are as always."""
    waiting = list(acts)

    def ask(asked: str, request: Callable[[], object]) -> object:
        return waiting.pop(0)(request) if asked == name and waiting else request()

    tables.catalog.ask = ask


def conflict(_: Callable[[], object]) -> object:
    raise TableConflict("somebody else was first")


def outage(_: Callable[[], object]) -> object:
    raise TransientStoreError("no answer")


def crash(_: Callable[[], object]) -> object:
    raise Crashed("before")


def crash_after(request: Callable[[], object]) -> object:
    request()
    raise Crashed("after")


# What is right.


def test_every_output_comes_into_a_table_that_is_made_for_it(tables):
    tables.compact("a.json", "b.json")
    receipt = tables.publish()
    tables.must_have_all()
    assert (receipt.status, receipt.outputs, receipt.commits, receipt.last) == ("done", 1, 1, 1)
    assert read_receipt(tables.world.settings, "publisher-1", tables.store) == receipt


def test_a_second_publisher_finds_nothing_to_do_and_writes_nothing(tables):
    tables.compact("a.json")
    tables.publish()
    before = tables.store.contents("lake", "_compactor/compacted/table/")
    receipt = tables.publish()
    assert (receipt.status, receipt.outputs, receipt.commits) == ("done", 0, 0)
    assert tables.store.contents("lake", "_compactor/compacted/table/") == before


def test_a_destination_without_any_commit_has_nothing_for_a_table(tables):
    assert tables.publish().status == "done"
    assert tables.table.uuid == ""


def test_later_outputs_follow_those_of_earlier_runs(tables):
    for name in ("a.json", "b.json", "c.json"):
        tables.compact(name)
        tables.publish()
    tables.must_have_all()
    assert tables.load().last == 3


def test_outputs_of_many_runs_come_in_by_one_commit(tables):
    for name in ("a.json", "b.json", "c.json"):
        tables.compact(name)
    receipt = tables.publish()
    tables.must_have_all()
    assert (receipt.outputs, receipt.commits) == (3, 1)


def test_a_commit_of_the_table_takes_no_more_outputs_than_it_should(tables):
    tables.compact("a.json")
    tables.publish(catalog=Refusing(tables.catalog))
    tables.compact("b.json")
    tables.compact("c.json")
    receipt = tables.publish(commit_outputs=2)
    tables.must_have_all()
    assert (receipt.outputs, receipt.entries, receipt.commits) == (3, 2, 2)


def test_the_table_log_is_summed_up_and_goes_on(tables, monkeypatch):
    monkeypatch.setattr("compactor.sinks.table_log._ENTRIES_A_CHECKPOINT", 2)
    for number in range(5):
        tables.compact(f"{number}.json")
        tables.publish()
    tables.must_have_all()
    state = tables.load()
    assert (state.last, state.checkpoint, state.outputs) == (5, 4, 5)
    # Without the hint the log is listed from its start, and says the same.
    tables.store.remove("lake", "_compactor/compacted/table/hint.json")
    assert tables.load() == state


class Refusing:
    """A catalog that takes no commit, until its publisher gives up."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def append(self, *_: object, **__: object) -> str:
        raise Crashed("it never comes so far")


# Crashes, and answers that are lost.


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_publisher_may_die_at_any_request_to_the_store(kind, moment):
    """One after the other dies one request later, until one comes through."""
    for request in range(1, 60):
        tables = Tables(kind)
        tables.compact("a.json", "b.json")
        tables.compact("c.json")
        left = [request]

        def die(call: Call, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Crashed(str(call))

        hooks = tables.store.hooks.before if moment == "before" else tables.store.hooks.after
        hooks.append(die)
        receipt = tables.publish()
        tables.store.hooks.clear()
        assert tables.publish().status == "done"
        tables.must_have_all()
        if receipt.status == "done":
            assert request > 8
            return
    raise AssertionError("it never comes through")


@pytest.mark.parametrize("act", [crash, crash_after, conflict, outage, unanswered])
@pytest.mark.parametrize("name", ["table_load", "table_create", "table_commit"])
def test_whatever_becomes_of_one_request_to_the_catalog(tables, name, act):
    tables.compact("a.json")
    answers(tables, name, act)
    try:
        tables.publish()
    except (TableConflict, TransientStoreError):
        assert name != "table_commit"
    tables.catalog.ask = lambda _, request: request()
    assert tables.publish().status == "done"
    tables.must_have_all()


def test_a_commit_whose_answer_was_lost_is_not_made_again(tables):
    tables.compact("a.json")
    answers(tables, "table_commit", unanswered)
    receipt = tables.publish()
    tables.must_have_all()
    assert (receipt.outputs, receipt.commits, receipt.conflicts) == (1, 1, 0)


def test_a_publisher_gives_up_where_others_are_always_first(tables):
    tables.compact("a.json")

    def lost(_: Callable[[], object]) -> object:
        tables.table.append_foreign([])
        raise TableConflict("somebody else was first")

    answers(tables, "table_commit", *[lost] * 60)
    with pytest.raises(TransientStoreError, match="tried 60 times"):
        tables.publish()
    assert tables.publish().status == "done"
    tables.must_have_all()


def test_a_conflict_with_no_other_writer_is_given_up_soon_and_is_not_one_to_try_again(tables):
    tables.compact("a.json")
    answers(tables, "table_commit", *[conflict] * 60)
    waited: list[float] = []
    with pytest.raises(TableConflict):
        tables.publish(pause=waited.append)
    assert (len(waited), sum(waited) < 30) == (8, True)
    assert "TableConflict" not in RETRIES
    assert tables.publish(catalog=MemoryCatalog(tables.table)).status == "done"
    tables.must_have_all()


def test_a_table_that_comes_to_ask_too_much_takes_nothing_more(tables):
    tables.compact("a.json")
    tables.publish()
    tables.compact("b.json")
    load: Callable[[str], TableState | None] = tables.catalog.load

    def asking(log_id: str) -> TableState | None:
        found = load(log_id)
        return None if found is None else replace(found, refusal="a table without row tracking")

    def lost(_: Callable[[], object]) -> object:
        tables.table.append_foreign([])
        tables.catalog.load = asking
        raise TableConflict("somebody else was first")

    answers(tables, "table_commit", lost)
    waited: list[float] = []
    with pytest.raises(InvalidInput, match="expected a table without row tracking"):
        tables.publish(pause=waited.append)
    assert len(waited) == 1
    assert tables.load().last == 2
    with pytest.raises(InvalidInput, match="expected a table without row tracking"):
        check_table(tables.world.settings, tables.store, tables.catalog)


def test_what_time_does_not_allow_is_left_to_the_next_call(tables):
    tables.compact("a.json")
    assert tables.publish(deadline=Time(59)).status == "more"
    assert tables.log_keys == []
    assert tables.publish(deadline=Time(61)).status == "done"
    tables.must_have_all()


# Two at once.


def test_of_two_publishers_that_commit_concurrently_one_does(tables):
    tables.compact("a.json")

    def overtake(request: Callable[[], object]) -> object:
        tables.catalog.ask = lambda _, request: request()
        other = MemoryCatalog(tables.table)
        assert tables.publish(catalog=other).status == "done"
        return request()

    answers(tables, "table_commit", overtake)
    receipt = tables.publish()
    tables.must_have_all()
    assert (receipt.status, receipt.outputs, receipt.conflicts) == ("done", 0, 1)


@pytest.mark.parametrize("at", ["_compactor/compacted/table/"])
def test_of_two_publishers_that_name_the_same_outputs_one_does(tables, at):
    tables.compact("a.json")
    tables.compact("b.json")
    acted: list[Call] = []

    def overtake(call: Call) -> None:
        if call.name == "create" and call.key.startswith(at) and not acted:
            acted.append(call)
            assert tables.publish(catalog=MemoryCatalog(tables.table)).status == "done"

    tables.store.hooks.before.append(overtake)
    assert tables.publish().status == "done"
    tables.must_have_all()
    assert tables.load().last == 1


def test_what_another_publisher_named_while_the_table_was_read_is_not_named_again(tables):
    tables.compact("a.json")
    tables.publish()
    tables.compact("b.json")

    def overtake(request: Callable[[], object]) -> object:
        tables.catalog.ask = lambda _, request: request()
        tables.publish(catalog=MemoryCatalog(tables.table))
        return request()

    answers(tables, "table_load", overtake)
    assert tables.publish().status == "done"
    tables.must_have_all()


def test_other_writers_and_compaction_in_between_change_nothing(tables):
    tables.compact("a.json")
    tables.publish()

    def meddle(request: Callable[[], object]) -> object:
        tables.table.append_foreign([900])
        tables.table.rewrite()
        tables.table.expire()
        return request()

    tables.compact("b.json")
    answers(tables, "table_commit", meddle)
    assert tables.publish().conflicts == 1
    assert tables.table.records() == Counter(dict.fromkeys([*tables.world.records, 900], 1))


# Tables that are not what they were.


def in_the_table(tables: Tables) -> Any:
    tables.compact("a.json")
    tables.publish()
    tables.compact("b.json")
    return tables.table


def must_refuse(tables: Tables, said: str) -> None:
    before = tables.store.contents("lake", "_compactor/compacted/table/"), tables.table.records()
    with pytest.raises(IntegrityError, match=said):
        tables.publish()
    after = tables.store.contents("lake", "_compactor/compacted/table/"), tables.table.records()
    assert before == after
    last = f"publisher-{tables.publishers}"
    receipt = read_receipt(tables.world.settings, last, tables.store)
    assert receipt is not None
    assert receipt.status == "failed"
    assert receipt.causes


def test_a_table_that_was_dropped_is_reported(tables):
    in_the_table(tables).drop()
    must_refuse(tables, "is gone: it was dropped or renamed")


def test_a_table_that_was_made_again_is_reported(tables):
    in_the_table(tables).create()
    must_refuse(tables, "it was made again")


def test_a_table_that_was_rolled_back_is_reported(tables):
    table = in_the_table(tables)
    tables.publish()
    tables.compact("c.json")
    assert table.go_back()
    must_refuse(tables, "does not have what it says")


def test_a_table_that_was_rolled_back_and_written_to_since_is_reported(tables):
    table = in_the_table(tables)
    tables.publish()
    tables.compact("c.json")
    assert table.go_back()
    table.append_foreign([900])
    must_refuse(tables, "does not have what it says")


def test_a_table_that_says_less_than_it_was_seen_with_is_reported(tables):
    table = in_the_table(tables)
    if isinstance(table, IcebergTable):
        table.properties.clear()
    else:
        table.transactions.clear()
    must_refuse(tables, "now says that it has nothing of this log")


def test_a_table_log_that_lost_its_entries_is_reported(tables):
    in_the_table(tables)
    for key in tables.log_keys:
        tables.store.remove("lake", key)
    must_refuse(tables, "which ends with 0: entries are gone")


def test_a_table_in_the_destination_is_refused(tables, monkeypatch):
    tables.compact("a.json")
    tables.table.create()
    loaded = MemoryCatalog(tables.table).load("x")
    assert loaded is not None
    monkeypatch.setattr(tables.catalog, "load", lambda _: replace(loaded, location="s3://lake/"))
    with pytest.raises(InvalidInput, match="outside the table's location"):
        tables.publish()
    assert tables.log_keys == []


def test_a_destination_has_one_table_for_good(tables):
    in_the_table(tables)
    with pytest.raises(InvalidInput, match=r"glue:lake.events, which has outputs"):
        tables.publish(catalog=Named(tables.catalog))


class Named(Refusing):
    """The same catalog under another address."""

    address = "glue:lake.others"


# Outputs that do not fit, or are not there.


def test_an_output_that_is_committed_and_not_readable_yet_is_left_to_the_next_publisher(tables):
    tables.compact("a.json")
    tables.world.add("b.json", '{{"id": "{}"}}')
    tables.store.hooks.crash("before", "complete_upload")
    with pytest.raises(Crashed):
        tables.world.run()
    tables.store.hooks.clear()
    assert tables.publish().outputs == 1
    tables.compact()
    assert tables.publish().outputs == 1
    tables.must_have_all()


def test_a_commit_that_was_replaced_before_it_was_readable_is_passed_over(tables):
    tables.world.add("a.json", '{{"id": "{}"}}')
    tables.store.hooks.crash("before", "complete_upload")
    with pytest.raises(Crashed):
        tables.world.run()
    tables.store.hooks.clear()
    for upload_id, key in tables.store.unfinished_uploads("lake").items():
        tables.store.abort_upload("lake", key, upload_id)
    tables.compact()
    assert tables.publish().outputs == 1
    tables.must_have_all()


# Commits that are replaced while publishers are at work.


def lose(tables: Tables, name: str) -> None:
    """A worker commits, dies before it publishes, and a lifecycle rule aborts its upload."""
    tables.world.add(name, '{{"id": "{}"}}')
    tables.store.hooks.crash("before", "complete_upload")
    with pytest.raises(Crashed):
        tables.world.run()
    tables.store.hooks.clear()
    for upload_id, key in tables.store.unfinished_uploads("lake").items():
        tables.store.abort_upload("lake", key, upload_id)


def once(tables: Tables, matches: Callable[[Call], bool], act: Callable[[], object]) -> None:
    """Act before the first such request."""
    acted: list[Call] = []

    def hook(call: Call) -> None:
        if not acted and matches(call):
            acted.append(call)
            act()

    tables.store.hooks.before.append(hook)


def entry_of_log(tables: Tables, sequence: int) -> Any:
    key = tables.world.settings.layout.commit(PARTITION.path, sequence)[1]
    return read_entry(tables.store, "lake", key, sequence)


def name_by_hand(tables: Tables, commit: Commit, **given: Any) -> None:
    """An entry of the table log with the output of a commit, or what is given in its place."""
    assert commit.output is not None
    output, through = replace(commit.output, **given), commit.sequence
    path = PARTITION.path
    draft = Draft(
        table=ADDRESS,
        uuid=tables.table.uuid,
        run_id="another",
        now=0.0,
        outputs=[
            NamedOutput(
                path=path,
                sequence=through,
                commit_id=commit.commit_id,
                bucket=output.bucket,
                key=output.key,
                size=output.size,
                crc32=output.crc32,
                rows=output.records,
            )
        ],
        through={path: Reached(through, commit.commit_id)},
    )
    state = tables.load()
    log = TableLog(tables.store, tables.world.settings, entry_of_log(tables, 1).log_id)
    assert log.append(state, draft)


def named(tables: Tables) -> list[int]:
    entries = tables.load().entries.values()
    return [one.sequence for entry in entries for one in entry.outputs]


def test_a_commit_that_is_replaced_before_the_look_at_its_output_is_not_named(tables):
    lose(tables, "a.json")
    once(
        tables,
        lambda call: call.name == "head" and call.key.startswith("compacted/"),
        tables.compact,
    )
    tables.publish()
    assert tables.publish().faults == []
    tables.must_have_all()
    assert named(tables) == [2]


def test_of_two_publishers_that_name_a_commit_and_its_replacement_one_does(tables):
    tables.compact("a.json")
    tables.publish()
    lose(tables, "b.json")
    tables.compact()
    replaced, replacement = entry_of_log(tables, 2).output, entry_of_log(tables, 3).output
    assert (replaced.key, replaced.crc32) == (replacement.key, replacement.crc32)
    once(
        tables,
        lambda call: call.name == "create" and "/table/" in call.key,
        lambda: name_by_hand(tables, entry_of_log(tables, 2)),
    )
    assert tables.publish().faults == []
    tables.must_have_all()
    assert named(tables) == [1, 2]
    # The partition goes on behind it.
    tables.compact("c.json")
    assert tables.publish().faults == []
    tables.must_have_all()


def test_an_output_whose_key_an_entry_names_is_not_named_again(tables):
    tables.compact("a.json")
    tables.publish()
    tables.compact("b.json")
    tables.compact("c.json")
    replaced, commit = entry_of_log(tables, 2), entry_of_log(tables, 3)
    name_by_hand(tables, replace(replaced, output=commit.output))
    receipt = tables.publish()
    assert (named(tables), receipt.faults) == ([1, 2], [])
    assert max(tables.table.records().values()) == 1


def test_another_output_at_a_key_that_an_entry_names_is_reported(tables):
    tables.compact("a.json")
    tables.publish()
    tables.compact("b.json")
    tables.compact("c.json")
    replaced, commit = entry_of_log(tables, 2), entry_of_log(tables, 3)
    name_by_hand(tables, replace(replaced, output=commit.output), size=1)
    receipt = tables.publish()
    assert "of which the table was given 1 for entry 2" in receipt.faults[0]
    assert named(tables) == [1, 2]


def test_a_void_commit_is_passed_together_with_its_replacement_alone(tables):
    tables.compact("a.json")
    lose(tables, "b.json")
    replacement = tables.world.settings.layout.commit(PARTITION.path, 3)[1]

    def die(call: Call) -> None:
        if (call.name, call.key) == ("create", replacement):
            raise Crashed("before the replacement is published")

    tables.store.hooks.after.append(die)
    with pytest.raises(Crashed):
        tables.world.run()
    tables.store.hooks.clear()
    assert entry_of_log(tables, 3).replaces == 2
    assert tables.publish().outputs == 1
    tables.compact()
    receipt = tables.publish()
    assert (receipt.outputs, receipt.faults) == (1, [])
    tables.must_have_all()


def test_an_output_that_became_void_after_the_table_had_it_is_reported(tables):
    tables.compact("a.json")
    tables.publish()
    tables.world.make_void(1)
    receipt = tables.publish()
    assert "which the table was given" in receipt.faults[0]


def test_a_partition_whose_log_is_broken_does_not_hold_up_the_others(tables):
    tables.compact("a.json")
    tables.compact("b.json")
    key = tables.world.settings.layout.commit(PARTITION.path, 1)[1]
    tables.store.remove("lake", key)
    receipt = tables.publish()
    assert receipt.status == "done"
    assert "has no entry 1" in receipt.faults[0]
    assert receipt.causes == receipt.faults


def test_a_commit_log_that_was_rebuilt_is_reported(tables):
    tables.compact("a.json")
    tables.publish()
    tables.compact("b.json")
    key = tables.world.settings.layout.commit(PARTITION.path, 1)[1]
    entry = decode_commit(tables.store.contents("lake")[key])
    tables.store.seed("lake", key, encode_commit(replace(entry, commit_id="another")))
    receipt = tables.publish()
    assert "is gone or another one" in receipt.faults[0]


def test_entries_of_another_log_are_refused(tables):
    tables.compact("a.json")
    tables.publish()
    _, key = tables.world.settings.layout.table_entry(1)
    entry = json.loads(tables.store.contents("lake")[key])
    for changed, said in (
        ({"log_id": "other"}, "names log other"),
        ({"number": 2}, "says that it is entry 2"),
        ({"version": 2}, "version 2"),
        ({"outputs": 1}, "damaged"),
    ):
        tables.store.seed("lake", key, json.dumps({**entry, **changed}).encode())
        with pytest.raises(IntegrityError, match=said):
            tables.publish()
