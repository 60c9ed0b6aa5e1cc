"""A table that others rolled back or made again is accepted, and each output is in it once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.clock import NoDeadline
from compactor.errors import IntegrityError, InvalidInput, TableConflict, TransientStoreError
from compactor.sinks.accept import Look, accept, given_by, look_at
from compactor.sinks.named_history import Restored
from compactor.sinks.table_entries import Acceptance, NamedOutput, TableEntry
from compactor_cli import commands as cli
from compactor_cli.commands import repair
from tests.support.cleaning import DAY
from tests.support.examples import PARTITION
from tests.support.memory_store import Call, Crashed
from tests.support.memory_tables import DeltaTable, IcebergTable
from tests.support.table_world import KINDS, Tables


@pytest.fixture(params=sorted(KINDS))
def tables(request: pytest.FixtureRequest) -> Tables:
    return rolled_back(request.param)


def rolled_back(kind: str) -> Tables:
    """The table has lost its second output of two."""
    made = Tables(kind)
    made.world.settings = replace(made.world.settings, delete_after="1d")
    for name in ("a.json", "b.json"):
        made.compact(name)
        made.publish()
    assert made.table.go_back()
    return made


def made_again(tables: Tables) -> None:
    tables.table.drop()
    tables.table.create()


def look(tables: Tables) -> Look:
    return look_at(tables.publishing())


def add_missing(tables: Tables, found: Look | None = None) -> Look:
    return accept(tables.publishing(), found or look(tables), adds=True, releases=False)


def as_is(tables: Tables, *, releases: bool = False) -> Look:
    return accept(tables.publishing(), look(tables), adds=False, releases=releases)


def clean_up(tables: Tables) -> CleanUpReceipt:
    tables.world.clock.advance(2 * DAY)
    run = CleanUpRun(
        PARTITION.path,
        tables.world.settings,
        tables.store,
        tables.world.clock,
        NoDeadline(),
        "clean-up",
        open_catalog=lambda *_: tables.catalog,
    )
    return record_clean_up(run, CleanUpReceipt(PARTITION.path, "clean-up"))


def names(outputs: Any) -> list[int]:
    return [one.sequence for one in outputs]


# What is missing.


def test_a_publisher_names_the_way_on(tables):
    with pytest.raises(IntegrityError, match="compactor repair table"):
        tables.publish()


def test_an_output_that_a_rollback_took_out_is_missing(tables):
    found = look(tables)
    assert found.fault
    assert (found.present, found.passed) == (1, 0)
    assert (names(found.absent), found.gone, found.doubtful, found.waiting) == ([2], [], [], [])


def test_all_outputs_are_missing_from_a_table_that_was_made_again(tables):
    made_again(tables)
    tables.table.append_foreign([-1, -2])
    found = look(tables)
    assert names(found.absent) == [1, 2]
    assert (found.present, found.others, found.other_rows) == (0, 1, 2)


def test_an_output_that_was_rewritten_before_is_not_missing(tables):
    add_missing(tables)
    tables.table.rewrite()
    tables.compact("c.json")
    tables.publish()
    assert tables.table.go_back()
    found = look(tables)
    assert (found.present, found.passed, names(found.absent)) == (0, 2, [3])
    add_missing(tables, found)
    tables.must_have_all()


def test_an_output_that_was_added_and_rewritten_after_the_rollback_is_not_missing(tables):
    """Somebody else gave it back to the table, and it was compacted."""
    table, (lost,) = tables.table, look(tables).absent
    files = replace(table.files, outputs=table.files.outputs | {(lost.bucket, lost.key)})
    at = table.current if isinstance(table, IcebergTable) else len(table.versions)
    table.commit(at, files, {})
    table.rewrite()
    found = look(tables)
    assert (found.passed, found.absent) == (2, [])
    add_missing(tables, found)
    tables.must_have_all()


def test_what_the_history_no_longer_shows_is_said_and_not_added():
    tables = rolled_back("iceberg")
    add_missing(tables)
    tables.table.rewrite()
    tables.table.append_foreign([-1])
    tables.table.expire()
    tables.compact("c.json")
    tables.publish()
    assert tables.table.go_back()
    found = look(tables)
    assert (names(found.doubtful), found.absent) == ([1, 2, 3], [])
    done = add_missing(tables, found)
    for seen in (done, look(tables), add_missing(tables)):
        assert (names(seen.doubtful), seen.absent, seen.fault) == ([1, 2, 3], [], "")
    assert tables.table.records().total() == 7
    assert clean_up(tables).counts.deleted == 0
    assert tables.publish().status == "done"


def test_an_output_that_waits_is_brought_in_with_either(tables):
    tables.compact("c.json")

    def crash_at_commit(name: str, request: Callable[[], object]) -> object:
        if name == "table_commit":
            raise Crashed("before")
        return request()

    # Of a table that is whole; then it is rolled back.
    add_missing(tables)
    tables.catalog.ask = crash_at_commit
    tables.publish()
    tables.catalog.ask = lambda _, request: request()
    assert tables.table.go_back()
    found = look(tables)
    assert (names(found.absent), names(found.waiting)) == ([2], [3])
    done = as_is(tables)
    assert done.present == 2
    assert tables.table.records().total() == 6


def test_an_output_that_is_gone_is_not_added_and_its_sources_stay(tables):
    (lost,) = look(tables).absent
    tables.store.remove(lost.bucket, lost.key)
    found = look(tables)
    assert (found.absent, names(found.gone)) == ([], [2])
    done = add_missing(tables, found)
    assert names(done.gone) == [2]
    assert clean_up(tables).counts.deleted == 1
    assert tables.publish().status == "done"


# What becomes of it.


def test_what_is_missing_is_added_and_publishers_and_clean_up_go_on(tables):
    done = add_missing(tables)
    assert (done.is_refused, done.lacking) == (False, {})
    tables.must_have_all()
    tables.compact("c.json")
    assert tables.publish().outputs == 1
    tables.must_have_all()
    assert clean_up(tables).counts.deleted == 3
    log = tables.load()
    assert (log.outputs, log.missing) == (3, {})


def test_a_table_that_was_made_again_is_filled_again(tables):
    made_again(tables)
    add_missing(tables)
    tables.must_have_all()
    tables.compact("c.json")
    tables.publish()
    tables.must_have_all()
    assert tables.load().uuid == tables.table.uuid


def test_more_than_one_commit_takes_is_added_by_several(tables):
    made_again(tables)
    work = tables.publishing(commit_outputs=1)
    done = accept(work, look_at(work), adds=True, releases=False)
    assert (done.log.last, done.lacking) == (4, {})
    tables.must_have_all()


def test_of_a_table_that_is_taken_as_it_is_the_sources_of_missing_outputs_stay(tables):
    done = as_is(tables)
    assert names(done.absent) == [2]
    log = tables.load()
    assert log.outputs == 1
    tables.compact("c.json")
    tables.publish()
    # Also when the table has more rows than it was given, and by a checkpoint.
    tables.table.append_foreign([-1, -2, -3, -4])
    assert clean_up(tables).counts.deleted == 2
    assert set(tables.world.sources()) == {3, 4, 5}


def test_what_is_missing_is_remembered_by_checkpoints(tables, monkeypatch):
    monkeypatch.setattr("compactor.sinks.table_log._ENTRIES_A_CHECKPOINT", 1)
    as_is(tables)
    tables.compact("c.json")
    tables.publish()
    log = tables.load()
    assert (log.checkpoint, len(log.missing), log.accepted, log.outputs) == (4, 1, 3, 2)
    assert names(look(tables).absent) == [2]
    assert clean_up(tables).counts.deleted == 2


def test_sources_of_missing_outputs_go_where_the_operator_says_so(tables):
    done = as_is(tables, releases=True)
    (lost,) = done.absent
    tables.store.remove(lost.bucket, lost.key)
    assert clean_up(tables).counts.deleted == 2


def test_what_was_left_out_can_be_added_later(tables):
    as_is(tables)
    tables.compact("c.json")
    tables.publish()
    found = look(tables)
    assert (found.fault, names(found.absent)) == ("", [2])
    add_missing(tables, found)
    tables.must_have_all()


def test_a_rollback_to_before_an_acceptance_is_judged_by_what_was_true_there(tables):
    as_is(tables)
    assert tables.table.go_back()
    found = look(tables)
    assert (found.present, names(found.absent)) == (1, [2])
    add_missing(tables, found)
    tables.must_have_all()


# Crashes, others, and both.


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_acceptance_may_die_at_any_request_to_the_store(kind, moment, again):
    for request in range(1, 80):
        tables = rolled_back(kind)
        if again:
            made_again(tables)
        left = [request]

        def die(call: Call, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Crashed(str(call))

        hooks = tables.store.hooks.before if moment == "before" else tables.store.hooks.after
        hooks.append(die)
        crashed = False
        try:
            add_missing(tables)
        except Crashed:
            crashed = True
        tables.store.hooks.clear()
        finish(tables)
        if not crashed:
            assert request > 8
            return
    raise AssertionError("it never comes through")


@pytest.mark.parametrize("act", ["crash", "crash_after", "conflict", "outage", "unanswered"])
@pytest.mark.parametrize("name", ["table_load", "table_holdings", "table_commit"])
@pytest.mark.parametrize("nth", [1, 2])
def test_whatever_becomes_of_one_request_of_an_acceptance(tables, name, act, nth):
    seen = itertools.count(1)

    def ask(asked: str, request: Callable[[], object]) -> object:
        if asked != name or next(seen) != nth:
            return request()
        if act in ("crash_after", "unanswered"):
            request()
        if act in ("crash", "crash_after"):
            raise Crashed(act)
        raise TableConflict(act) if act == "conflict" else TransientStoreError(act)

    tables.catalog.ask = ask
    with suppress(Crashed, TableConflict, TransientStoreError):
        add_missing(tables)
    tables.catalog.ask = lambda _, request: request()
    finish(tables)


def finish(tables: Tables) -> None:
    """Whatever happened before: it is accepted, published, and each record is there once."""
    assert max(tables.table.records().values(), default=0) <= 1
    found = look(tables)
    if found.is_refused or found.absent:
        add_missing(tables, found)
    assert tables.publish().status == "done"
    tables.must_have_all()
    tables.compact("z.json")
    assert tables.publish().status == "done"
    tables.must_have_all()


def test_publishers_and_clean_up_refuse_a_table_while_it_is_accepted(tables):
    made_again(tables)

    def crash_at_commit(name: str, request: Callable[[], object]) -> object:
        if name == "table_commit":
            raise Crashed("before")
        return request()

    tables.catalog.ask = crash_at_commit
    with pytest.raises(Crashed):
        add_missing(tables)
    tables.catalog.ask = lambda _, request: request()
    with pytest.raises(IntegrityError):
        tables.publish()
    tables.world.clock.advance(2 * DAY)
    with pytest.raises(IntegrityError):
        clean_up(tables)
    assert len(tables.world.sources()) == 6
    finish(tables)


def test_a_table_that_comes_back_while_it_is_accepted_is_looked_at_again():
    """It is rolled forward to where it was: adding what was missing would double it."""
    tables = rolled_back("iceberg")
    assert isinstance(tables.table, IcebergTable)
    forward = max(tables.table.snapshots)

    def come_back(name: str, request: Callable[[], object]) -> object:
        if name == "table_commit":
            assert isinstance(tables.table, IcebergTable)
            tables.table.current = forward
        return request()

    tables.catalog.ask = come_back
    with pytest.raises(TableConflict, match="look at it again"):
        add_missing(tables)
    tables.catalog.ask = lambda _, request: request()
    tables.must_have_all()
    with pytest.raises(IntegrityError, match="run compactor repair table again"):
        tables.publish()
    finish(tables)


def test_others_who_append_meanwhile_are_no_reason_to_ask_again(tables):
    once = iter([True])

    def append(name: str, request: Callable[[], object]) -> object:
        if name == "table_commit" and next(once, False):
            tables.table.append_foreign([-1])
        return request()

    tables.catalog.ask = append
    done = add_missing(tables)
    assert done.log.last == 4
    assert tables.table.records().total() == 7


@pytest.mark.parametrize("first", ["add", "as is"])
def test_of_two_concurrent_acceptances_one_counts(tables, first):
    stale = look(tables)
    if first == "add":
        add_missing(tables)
    else:
        as_is(tables)
    try:
        add_missing(tables, stale)
    except TableConflict:
        assert first == "add"
    finish(tables)


def test_of_two_concurrent_acceptances_one_may_be_first_with_its_entry_and_last_at_the_table(
    tables,
):
    once = iter([True])

    def overtake(name: str, request: Callable[[], object]) -> object:
        if name == "table_commit" and next(once, False):
            add_missing(tables)
        return request()

    tables.catalog.ask = overtake
    with pytest.raises(TableConflict, match="look at it again"):
        add_missing(tables)
    finish(tables)


def test_a_publisher_that_saw_the_table_before_writes_no_entry_for_it(tables):
    """It has found what is left over, the table is made again, and accepted; then it goes on."""
    add_missing(tables)
    tables.compact("c.json")
    create, once = tables.store.create, iter([True])

    def accepted_meanwhile(bucket: str, key: str, body: bytes, **given: Any) -> Any:
        if "/table/" in key and next(once, False):
            made_again(tables)
            add_missing(tables)
        return create(bucket, key, body, **given)

    tables.store.create = accepted_meanwhile
    with pytest.raises(IntegrityError):
        tables.publish()
    del tables.store.create
    finish(tables)


def test_a_publisher_that_works_meanwhile_has_its_outputs_in_the_table_once(tables):
    once = iter([True])

    def publish(name: str, request: Callable[[], object]) -> object:
        done = request()
        if name == "table_commit" and next(once, False):
            tables.compact("c.json")
            tables.publish()
        return done

    tables.catalog.ask = publish
    add_missing(tables)
    tables.must_have_all()
    finish(tables)


# Pure, and what is refused.


def test_what_a_table_was_given_is_what_its_last_acceptance_says():
    one, two, three = (
        NamedOutput(
            path="", sequence=n, commit_id="", bucket="b", key=f"{n}", size=1, crc32=None, rows=1
        )
        for n in (1, 2, 3)
    )

    def entry(
        number: int, *outputs: NamedOutput, missing: list[NamedOutput] | None = None
    ) -> TableEntry:
        return TableEntry(
            number=number,
            entry_id="",
            log_id="",
            table="",
            uuid="",
            run_id="",
            created_at=0.0,
            outputs=list(outputs),
            through={},
            acceptance=None
            if missing is None
            else Acceptance(
                table_version="", absent=missing, doubtful=[], releases_sources=False, outputs=0
            ),
        )

    entries = [
        entry(1, one),
        entry(2, two),
        entry(3, missing=[two]),
        entry(4, three),
        entry(5, two, missing=[]),
    ]
    found = [[o.sequence for o in given_by(entries, n)[0].values()] for n in range(6)]
    assert found == [[], [1], [1, 2], [1], [1, 3], [1, 2, 3]]


def test_a_destination_without_a_table_has_nothing_to_accept():
    tables = Tables("iceberg")
    tables.compact("a.json")
    with pytest.raises(InvalidInput, match="given to a table"):
        look(tables)


def test_a_table_that_is_gone_is_to_be_brought_back_or_made_first(tables):
    tables.table.drop()
    with pytest.raises(IntegrityError, match="make it again, and then accept it"):
        look(tables)


def test_a_table_log_that_lost_entries_is_not_accepted(tables):
    add_missing(tables)
    for key in tables.log_keys:
        if any(f"{n:020d}" in key for n in (2, 3)):
            tables.store.remove("lake", key)
    with pytest.raises(IntegrityError, match="entries are gone"):
        look(tables)


# The command.


def command(tables: Tables, monkeypatch: pytest.MonkeyPatch, *given: str) -> int:
    monkeypatch.setattr(repair, "open_store", lambda *_: tables.store)
    monkeypatch.setattr(repair, "open_catalog", lambda *_: tables.catalog)
    return cli.main(["repair", "table", "s3://source/logs/", "s3://lake/compacted/", *given])


def test_the_command_shows_what_is_missing_and_changes_nothing(tables, monkeypatch, capsys):
    before = tables.log_keys
    assert command(tables, monkeypatch) == 0
    out = capsys.readouterr().out
    assert "1 output, 3 rows: missing" in out
    assert tables.log_keys == before


def test_the_command_asks_unless_yes_is_given(tables, monkeypatch, capsys):
    assert command(tables, monkeypatch, "--add-missing") == 2
    assert "--yes" in capsys.readouterr().err
    assert command(tables, monkeypatch, "--add-missing", "--yes") == 0
    assert "accepted: entry 3 of the table log" in capsys.readouterr().out
    tables.must_have_all()
    assert command(tables, monkeypatch, "--add-missing", "--yes") == 0
    assert "there is nothing to accept" in capsys.readouterr().out


def test_the_command_shows_all_as_json(tables, monkeypatch, capsys):
    assert command(tables, monkeypatch, "--as-is", "--yes", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["outputs"], told["present"], told["accepted"]) == (2, 1, 3)
    assert len(told["missing"]) == 1
    assert told["undecided"] == []


# All of it, in any order.


class Walk:
    """A destination and its table, to which anything may happen."""

    def __init__(self, kind: str, seed: int) -> None:
        self.random = Random(seed)
        self.tables = Tables(kind)
        settings = self.tables.world.settings
        self.tables.world.settings = replace(settings, delete_after="1d")
        self.names = (f"{number}.json" for number in itertools.count())
        self.foreign = itertools.count(1)
        self.compact()

    def step(self) -> None:
        acts = [
            self.compact,
            self.publish,
            self.publish,
            self.rewrite,
            self.delete,
            self.append,
            self.go_back,
            self.go_anywhere,
            self.make_again,
            lambda: self.accept(adds=True),
            lambda: self.accept(adds=True),
            lambda: self.accept(adds=False),
            self.clean_up,
        ]
        self.random.choice(acts)()
        twice = [one for one, count in self.tables.table.records().items() if count > 1]
        assert not twice

    def compact(self) -> None:
        self.tables.compact(next(self.names))

    def publish(self) -> None:
        with self.dying(), suppress(IntegrityError, TransientStoreError):
            self.tables.publish()

    def rewrite(self) -> None:
        if self.tables.table.uuid and self.tables.table.records():
            self.tables.table.rewrite()

    def delete(self) -> None:
        rows = sorted(self.tables.table.records()) if self.tables.table.uuid else []
        if rows:
            self.tables.table.delete(self.random.choice(rows), in_place=self.random.random() < 0.5)

    def append(self) -> None:
        if self.tables.table.uuid:
            self.tables.table.append_foreign([-next(self.foreign)])

    def go_back(self) -> None:
        if self.tables.table.uuid:
            for _ in range(self.random.randint(1, 2)):
                self.tables.table.go_back()

    def go_anywhere(self) -> None:
        """To any state that the table ever was in."""
        table = self.tables.table
        if isinstance(table, IcebergTable) and table.snapshots:
            table.current = self.random.choice(list(table.snapshots))
        elif isinstance(table, DeltaTable) and table.versions:
            to = self.random.randrange(len(table.versions))
            table.restores.append(Restored(len(table.versions), to))
            table.versions.append(table.versions[to])
            table.operations.append("restore")

    def make_again(self) -> None:
        if self.tables.table.uuid and self.random.random() < 0.3:
            made_again(self.tables)

    def accept(self, *, adds: bool) -> None:
        with self.dying(), suppress(InvalidInput, IntegrityError, TableConflict):
            found = look(self.tables)
            self.come_between()
            accept(self.tables.publishing(), found, adds=adds, releases=False)

    def come_between(self) -> None:
        if self.random.random() < 0.3:
            self.random.choice([self.append, self.rewrite, self.go_back, self.go_anywhere])()

    def clean_up(self) -> None:
        before = set(self.tables.world.sources())
        with suppress(IntegrityError):
            clean_up(self.tables)
        gone = before - set(self.tables.world.sources())
        assert gone <= set(self.tables.table.records())

    @contextmanager
    def dying(self) -> Iterator[None]:
        """Whoever is at work may die at some request, and find others at the table."""
        left = self.random.choice([0, 0, self.random.randint(1, 40)])

        def die(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Crashed("here")

        def ask(name: str, request: Callable[[], object]) -> object:
            die()
            if name == "table_commit":
                self.come_between()
            done = request()
            die()
            return done

        hooks = self.tables.store.hooks
        hooks.before.append(die)
        hooks.after.append(die)
        self.tables.catalog.ask = ask
        with suppress(Crashed):
            yield
        hooks.clear()
        self.tables.catalog.ask = lambda _, request: request()

    def end(self) -> None:
        """All goes on."""
        if not self.tables.load().last:
            return
        add_missing(self.tables)
        assert self.tables.publish().status == "done"
        assert max(self.tables.table.records().values(), default=1) == 1


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_no_record_is_in_the_table_twice(kind, seed):
    walked(kind, seed)


def walked(kind: str, seed: int) -> None:
    walk = Walk(kind, seed)
    for _ in range(40):
        walk.step()
    walk.end()


@pytest.mark.parametrize(
    ("guard", "instead"),
    [
        ("compactor.sinks.accept.given_by", lambda *_: ({}, {})),
        ("tests.support.memory_tables.MemoryCatalog._conditional", False),
    ],
)
def test_these_walks_notice_a_guard_that_is_taken_out(monkeypatch, guard, instead):
    monkeypatch.setattr(guard, instead)
    for seed in range(100):
        for kind in sorted(KINDS):
            try:
                walked(kind, seed)
            except AssertionError:
                return
    raise RuntimeError("nothing was noticed")
