"""An output is the table's own once the table has it; nothing is done without both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compactor.cleaning.clean_partition import CleanUpRun, decide, record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.cleaning.due import CleanUpFacts
from compactor.clock import NoDeadline
from compactor_cli.commands import verify
from tests.support.cleaning import DAY
from tests.support.examples import PARTITION
from tests.support.memory_store import Crashed
from tests.support.table_world import KINDS, Tables


@pytest.fixture(params=sorted(KINDS))
def tables(request: pytest.FixtureRequest) -> Tables:
    made = Tables(request.param)
    made.world.settings = replace(made.world.settings, delete_after="1d")
    return made


def cleaning(tables: Tables) -> CleanUpRun:
    return CleanUpRun(
        PARTITION.path,
        tables.world.settings,
        tables.store,
        tables.world.clock,
        NoDeadline(),
        "clean-up",
        open_catalog=lambda *_: tables.catalog,
    )


def clean_up(tables: Tables) -> CleanUpReceipt:
    tables.world.clock.advance(2 * DAY)
    return record_clean_up(cleaning(tables), CleanUpReceipt(PARTITION.path, "clean-up"))


def check(tables: Tables) -> verify.Checked:
    return verify.check(
        tables.world.settings, tables.store, sources=False, catalog=lambda *_: tables.catalog
    )


def compact_and_expire(tables: Tables) -> None:
    """The outputs that the table was given are gone, and their rows in a file of its own."""
    compact_and_expire_given(tables)
    assert tables.store.contents("lake", "compacted/") == {}


def compact_and_expire_given(tables: Tables) -> None:
    """The same, while there are outputs that it was not given."""
    tables.table.rewrite()
    tables.table.expire()


# Clean-up.


def test_sources_stay_while_their_output_is_not_in_the_table(tables):
    tables.compact("a.json")
    receipt = clean_up(tables)
    assert (receipt.status, receipt.counts.deleted, receipt.unsafe) == ("done", 0, [])
    tables.publish()
    assert clean_up(tables).counts.deleted == 1


def test_sources_stay_while_their_output_is_named_and_not_in_the_table(tables):
    tables.compact("a.json")

    def crash(name, request):
        if name == "table_commit":
            raise Crashed("before")
        return request()

    tables.catalog.ask = crash
    tables.publish()
    assert tables.load().last == 1
    assert clean_up(tables).counts.deleted == 0


def test_sources_go_although_the_table_has_deleted_their_output(tables):
    tables.compact("a.json")
    tables.publish()
    compact_and_expire(tables)
    assert clean_up(tables).counts.deleted == 1
    tables.must_have_all()


def test_sources_stay_where_a_user_deleted_rows_and_as_many_came_since(tables):
    tables.compact("a.json")
    tables.publish()
    compact_and_expire(tables)
    tables.table.delete(next(iter(tables.table.records())), in_place=False)
    tables.table.append_foreign([900, 901])
    receipt = clean_up(tables)
    assert receipt.counts.deleted == 0
    assert "the 3 rows of s3://lake/" in receipt.unsafe[0]
    assert "(overwrite) removed it" in receipt.unsafe[0]
    assert receipt.unsafe[0].endswith("; its sources stay")


@pytest.mark.parametrize("in_place", [True, False])
def test_sources_stay_where_rows_were_deleted_although_the_output_stands(tables, in_place):
    tables.compact("a.json")
    tables.publish()
    tables.table.delete(next(iter(tables.table.records())), in_place=in_place)
    receipt = clean_up(tables)
    assert receipt.counts.deleted == 0
    assert "are not all in" in receipt.unsafe[0]


def test_sources_stay_where_nothing_shows_any_more_what_replaced_their_output():
    tables = Tables("iceberg")
    tables.world.settings = replace(tables.world.settings, delete_after="1d")
    tables.compact("a.json")
    tables.publish()
    tables.table.rewrite()
    tables.table.append_foreign([900])
    tables.table.expire()
    receipt = clean_up(tables)
    assert receipt.counts.deleted == 0
    assert "expire later than delete_after" in receipt.unsafe[0]


def test_nothing_is_deleted_where_the_table_is_not_what_it_was(tables):
    tables.compact("a.json")
    tables.publish()
    tables.table.drop()
    tables.world.clock.advance(2 * DAY)
    assert "is gone: it was dropped or renamed" in decide(cleaning(tables)).error
    assert len(tables.world.sources()) == 3


def test_a_clean_up_without_the_table_in_its_settings_finds_it_by_its_log(tables):
    tables.compact("a.json")
    tables.publish()
    tables.compact("b.json")
    tables.world.settings = replace(tables.world.settings, table=None)
    compact_and_expire_given(tables)
    assert clean_up(tables).counts.deleted == 1


def looks_for_a_table_log(tables: Tables) -> int:
    _, key = tables.world.settings.layout.table_entry(1)
    return sum(call.name == "head" and call.key == key for call in tables.store.calls)


def test_that_there_is_no_table_is_asked_once_by_a_process_of_a_run(tables):
    tables.world.settings = replace(tables.world.settings, table=None)
    facts = CleanUpFacts()
    for name in ("a.json", "b.json", "c.json"):
        tables.compact(name)
        tables.world.clock.advance(2 * DAY)
        run = replace(cleaning(tables), facts=facts)
        done = record_clean_up(run, CleanUpReceipt(PARTITION.path, name))
        assert done.counts.deleted == 1
    assert looks_for_a_table_log(tables) == 1
    # Another run asks itself.
    tables.compact("d.json")
    assert clean_up(tables).counts.deleted == 1
    assert looks_for_a_table_log(tables) == 2


def test_a_table_that_was_named_since_is_found_by_an_output_that_is_gone(tables):
    named = tables.world.settings
    tables.world.settings = replace(named, table=None)
    run = replace(cleaning(tables), facts=CleanUpFacts(has_no_table=True))
    tables.world.settings = named
    tables.compact("a.json")
    tables.publish()
    compact_and_expire_given(tables)
    tables.world.clock.advance(2 * DAY)
    done = record_clean_up(run, CleanUpReceipt(PARTITION.path, "clean-up"))
    assert (done.unsafe, done.counts.deleted) == ([], 1)


# A worker that finds an output gone which its log has not summed up yet.


def test_an_output_that_the_table_deleted_is_not_built_again(tables):
    tables.world.add("a.json", '{{"id": "{}"}}')
    tables.store.hooks.crash("after", "complete_upload")
    with pytest.raises(Crashed):
        tables.world.run()
    tables.store.hooks.clear()
    tables.publish()
    compact_and_expire(tables)
    assert tables.world.run().counts.objects_in == 0
    tables.publish()
    tables.must_have_all()


# Verify, and what cannot be done.


def test_verify_shows_what_is_in_the_table_and_what_waits(tables):
    tables.compact("a.json")
    tables.publish()
    tables.compact("b.json")
    found = check(tables)
    assert found.findings == []
    assert found.table is not None
    assert (found.table.outputs, found.table.waiting, found.table.rewritten) == (1, 1, 0)


def test_verify_follows_rewrites_of_an_output_that_is_gone(tables):
    tables.compact("a.json")
    tables.publish()
    compact_and_expire(tables)
    found = check(tables)
    assert found.findings == []
    assert found.table is not None
    assert found.table.rewritten == 1


def test_verify_finds_an_output_that_is_gone_with_its_rows(tables):
    tables.compact("a.json")
    tables.publish()
    compact_and_expire(tables)
    tables.table.overwrite([900, 901, 902])
    (line,) = check(tables).findings
    assert "are not all in" in line


def test_verify_reports_a_table_that_is_not_what_it_was(tables):
    tables.compact("a.json")
    tables.publish()
    tables.table.drop()
    (line,) = check(tables).findings
    assert "is gone: it was dropped" in line
