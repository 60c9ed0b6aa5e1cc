"""An output that does not fit the table is set aside: all others come in, and its sources stay."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compactor.errors import InvalidInput
from compactor_cli import commands as cli
from tests.support.examples import PARTITION
from tests.support.memory_store import Call, Crashed
from tests.support.memory_tables import MemoryCatalog
from tests.support.table_world import KINDS, Tables
from tests.support.world import records_in
from tests.unit.test_table_proof import clean_up


@pytest.fixture(params=sorted(KINDS))
def tables(request: pytest.FixtureRequest) -> Tables:
    return Tables(request.param)


def poisoned(tables: Tables, *names: str) -> set[Any]:
    """Compact these, with records that do not fit the table."""
    before = set(tables.world.records)
    tables.compact(*names)
    poison = set(tables.world.records) - before
    tables.table.poison |= poison
    return poison


def in_the_table(tables: Tables) -> set[Any]:
    found = tables.table.records()
    assert set(found.values()) <= {1}
    return set(found)


def with_poison(tables: Tables) -> set[Any]:
    """A table with an output, one that does not fit, and one after that."""
    tables.compact("a.json")
    tables.publish()
    poison = poisoned(tables, "b.json")
    tables.compact("c.json")
    return poison


def test_one_output_that_does_not_fit_keeps_no_other_out(tables):
    poison = with_poison(tables)
    receipt = tables.publish()
    assert (receipt.status, receipt.outputs) == ("done", 1)
    assert in_the_table(tables) == set(tables.world.records) - poison
    (fault,) = receipt.faults
    assert "is not in the table: a column is of another type" in fault
    (aside,) = tables.load().aside(PARTITION.path)
    assert (aside.sequence, aside.line in fault) == (2, True)


def test_every_later_run_reports_it_and_writes_nothing(tables):
    with_poison(tables)
    first = tables.publish()
    before = tables.store.contents("lake", "_compactor/compacted/table/")
    assert tables.publish().faults == first.faults
    assert tables.store.contents("lake", "_compactor/compacted/table/") == before


def test_it_comes_in_once_when_the_table_takes_it(tables):
    with_poison(tables)
    tables.publish()
    tables.table.takes_all = True
    receipt = tables.publish()
    assert (receipt.outputs, receipt.faults) == (1, [])
    tables.must_have_all()
    assert tables.load().aside(PARTITION.path) == ()
    assert tables.publish().outputs == 0
    tables.must_have_all()


def test_it_is_tried_again_when_the_settings_decide_otherwise(tables):
    tables.compact("a.json")
    tables.publish()
    tables.compact("b.json")
    given = {key for _, key in tables.load().given}
    (key,) = set(tables.store.contents("lake", "compacted/")) - given
    tables.catalog.misfits[key] = InvalidInput("schema_evolution", "refuse", "no column x")
    tables.compact("c.json")
    assert "no column x" in tables.publish().faults[0]
    tables.world.settings = replace(tables.world.settings, schema_evolution="add_columns")
    assert tables.publish().faults == []
    tables.must_have_all()


def test_nothing_is_written_while_nothing_fits(tables):
    tables.compact("a.json")
    tables.publish()
    before = tables.log_keys
    poisoned(tables, "b.json")
    for _ in range(2):
        (fault,) = tables.publish().faults
        assert "a column is of another type" in fault
    assert tables.log_keys == before
    tables.table.takes_all = True
    assert tables.publish().outputs == 1
    tables.must_have_all()


def test_a_checkpoint_keeps_what_was_set_aside(tables, monkeypatch):
    monkeypatch.setattr("compactor.sinks.table_log._ENTRIES_A_CHECKPOINT", 1)
    poison = with_poison(tables)
    tables.publish()
    state = tables.load()
    assert (state.checkpoint, state.entries) == (2, {})
    assert [state.names(PARTITION.path, one) for one in (1, 2, 3)] == [True, False, True]
    tables.table.takes_all = True
    tables.publish()
    assert in_the_table(tables) >= poison
    tables.must_have_all()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_publisher_may_die_at_any_request_while_it_sets_aside_and_takes_back(kind, moment):
    for request in range(1, 60):
        tables = Tables(kind)
        poison = with_poison(tables)
        left = [request]

        def die(call: Call, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Crashed(str(call))

        hooks = tables.store.hooks.before if moment == "before" else tables.store.hooks.after
        hooks.append(die)
        first = tables.publish().status
        assert in_the_table(tables) <= set(tables.world.records) - poison
        tables.table.takes_all = True
        second = tables.publish().status
        tables.store.hooks.clear()
        assert tables.publish().faults == []
        tables.must_have_all()
        if first == second == "done":
            return
    raise AssertionError("it never comes through")


def test_of_two_publishers_that_take_it_back_concurrently_one_does(tables):
    with_poison(tables)
    tables.publish()
    tables.table.takes_all = True
    acted: list[Call] = []

    def overtake(call: Call) -> None:
        if call.name == "create" and "/table/" in call.key and not acted:
            acted.append(call)
            assert tables.publish(catalog=MemoryCatalog(tables.table)).outputs == 1

    tables.store.hooks.before.append(overtake)
    assert tables.publish().faults == []
    assert acted
    tables.must_have_all()


def test_an_output_that_is_gone_when_it_is_tried_again_stays_aside(tables):
    with_poison(tables)
    tables.publish()
    (aside,) = tables.load().aside(PARTITION.path)
    tables.store.remove(aside.bucket, aside.key)
    tables.table.takes_all = True
    tables.compact("d.json")
    receipt = tables.publish()
    assert receipt.outputs == 1
    assert aside.key in receipt.faults[0]


def test_clean_up_keeps_the_sources_of_what_was_set_aside(tables):
    tables.world.settings = replace(tables.world.settings, delete_after="1d")
    poison = with_poison(tables)
    tables.publish()
    clean_up(tables)
    left = {n for body in tables.store.contents("source").values() for n in records_in(body)}
    assert left == poison
    tables.table.takes_all = True
    tables.publish()
    clean_up(tables)
    assert tables.store.contents("source") == {}


def show(tables: Tables, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("compactor_cli.commands.table.open_store", lambda *_: tables.store)
    settings = tables.world.settings
    return cli.main(["table", "show", settings.source.uri, settings.destination.uri, *words])


def test_the_command_line_shows_what_was_set_aside(tables, monkeypatch, capsys):
    with_poison(tables)
    tables.publish()
    tables.compact("d.json")
    assert show(tables, monkeypatch) == 0
    out = capsys.readouterr().out
    assert "glue:lake.events: 2 outputs added" in out
    assert "1 output waiting for the next run" in out
    assert "1 output set aside; their sources are kept" in out
    assert "a column is of another type" in out
    assert show(tables, monkeypatch, "--json") == 0
    (aside,) = json.loads(capsys.readouterr().out)["set_aside"]
    assert (aside["path"], aside["sequence"]) == (PARTITION.path, 2)


def test_without_any_table_the_command_line_asks_for_one(tables, monkeypatch, capsys):
    tables.compact("a.json")
    assert show(tables, monkeypatch) == 2
    assert "--reader-table" in capsys.readouterr().err
