"""The manifest table has the rows of ``compactor manifest``, whatever came in between."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from compactor import layout
from compactor.codecs.parquet_writer import Kind
from compactor.errors import TransientStoreError
from compactor.log.at_rest import read_rest
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.log.stored import StoredLog, one_log
from compactor.model import Again
from compactor.outputs.manifest_table import KnownLog, ManifestTable
from compactor.outputs.mapping import COLUMNS, Mapped
from compactor.report.gathered import Gathered
from compactor.runs.partition import PartitionRun, record_partition
from compactor.runs.receipts import Counts, Receipt
from compactor_cli.commands import main, manifest
from compactor_cli.manifest_tables import bring_up_to_date
from compactor_cli.mapping import mapping
from compactor_cli.mapping_parquet import _SCHEMA
from tests.support.cleaning import DAY
from tests.support.document_tables import table_of
from tests.support.examples import NOW, PARTITION
from tests.support.memory_store import Call, Crashed
from tests.support.world import LOG_LINE, World
from tests.unit.test_cli_restore import make_columnar
from tests.unit.test_commit_protocol import lose_every_upload, waiting
from tests.unit.test_crashes import at_call, death

DOCUMENT = Path(__file__).parents[2] / "docs" / "commands.md"
STATE = "_compactor/compacted/"
TABLE = f"{STATE}manifest/sources/"
THROUGH = f"{STATE}manifest/through/2026-01-02-{PARTITION.id[-16:]}.json"
TODAY = datetime.fromtimestamp(NOW, UTC).date()
JSON = '{{"id": "{}"}}'
Row = tuple[Any, ...]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def world() -> World:
    made = world_of()
    made.add_variety()
    return made


def world_of(**given: object) -> World:
    return World(**{"manifest_table": True, **given})


def objects(world: World) -> dict[str, bytes]:
    """The table's objects, by their names below it."""
    return {
        key.removeprefix(TABLE): body for key, body in world.store.contents("lake", TABLE).items()
    }


def rows_of(body: bytes) -> list[Row]:
    return [tuple(one.values()) for one in pq.read_table(io.BytesIO(body)).to_pylist()]


def exported(world: World) -> list[Row]:
    return sorted(map(tuple, mapping(world.settings.state, world.store)), key=_order)


def _order(row: Row) -> str:
    return repr((*row[:4], *row[-2:]))


def told(world: World) -> list[Row]:
    """What the table tells, object by object."""
    return sorted((row for body in objects(world).values() for row in rows_of(body)), key=_order)


def saved(world: World, place: Path) -> Path:
    """The table as a directory."""
    for name, body in objects(world).items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(body)
    return place


def must_tell_what_is_exported(world: World) -> None:
    rows = exported(world)
    assert told(world) == rows
    assert rows


def entries(world: World) -> dict[int, Commit]:
    log = CommitLog(world.store, world.settings, PARTITION)
    return {one.sequence: one for one in log.every_commit(valid_only=False)}


# What engines read


def test_engines_read_the_export_and_the_day_of_each_output(world: World, tmp_path: Path) -> None:
    world.run()
    world.clock.advance(DAY)
    world.add("late.json", JSON)
    world.run()
    expected = exported(world)
    place = saved(world, tmp_path)
    names = [one.name for one in COLUMNS]
    with duckdb.connect() as engine:
        rows = engine.execute(
            "SELECT * REPLACE (epoch_us(committed_at) AS committed_at)"
            " FROM read_parquet(?, hive_partitioning = true)",
            [f"{place}/*/*.parquet"],
        )
        columns = [one[0] for one in rows.description]
        found = [dict(zip(columns, row, strict=True)) for row in rows.fetchall()]
        days = engine.execute(
            "SELECT typeof(output_date), output_date, count(*) FROM read_parquet(?,"
            " hive_partitioning = true) GROUP BY ALL ORDER BY output_date",
            [f"{place}/*/*.parquet"],
        ).fetchall()
    assert columns == [*names, "output_date"]
    for row in found:
        at = datetime.fromtimestamp(row["committed_at"] / 1e6, UTC)
        assert row.pop("output_date") == at.date()
        row["committed_at"] = at
    assert sorted((tuple(row.values()) for row in found), key=_order) == expected
    tomorrow = datetime.fromtimestamp(NOW + DAY, UTC).date()
    assert days == [("DATE", TODAY, len(expected) - 1), ("DATE", tomorrow, 1)]


def test_its_columns_are_those_of_the_export(world: World, tmp_path: Path) -> None:
    world.run()
    place = saved(world, tmp_path)
    found = ds.dataset(place, format="parquet", partitioning="hive")
    assert found.schema.remove(len(_SCHEMA)) == _SCHEMA
    assert found.schema.names[-1] == "output_date"
    assert tuple(_SCHEMA.names) == Mapped._fields


def test_the_statements_of_the_documentation_are_of_these_columns(
    world: World, tmp_path: Path
) -> None:
    world.run()
    text = DOCUMENT.read_text("utf-8")
    (duckdb_sql,) = re.findall(r"```sql\n(SELECT output, \"offset.*?;)\n```", text, re.DOTALL)
    (athena_sql,) = re.findall(r"```sql\n(CREATE EXTERNAL TABLE sources.*?;)\n```", text, re.DOTALL)
    assert text.count(f"s3://my-lake/{TABLE}") >= 4
    named = re.findall(r"^  `?(\w+)`? (\w+),?$", athena_sql, re.MULTILINE)
    types = {
        Kind.TEXT: "string",
        Kind.BYTES: "binary",
        Kind.WHOLE: "bigint",
        Kind.MOMENT: "timestamp",
        Kind.FLAG: "boolean",
    }
    assert named == [(one.name, types[one.kind]) for one in COLUMNS]
    source = next(row for row in exported(world) if row[2].endswith("b.json"))
    here = duckdb_sql.replace(f"s3://my-lake/{TABLE}", f"{saved(world, tmp_path)}/")
    here = here.replace("logs/2026/01/02/device-17.json", source[2])
    with duckdb.connect() as engine:
        assert engine.execute(here).fetchall() == [(source[6], source[9], source[10])]


def test_a_day_is_a_directory_and_a_key_names_the_objects_that_may_have_it(
    world: World, tmp_path: Path
) -> None:
    world.run()
    world.clock.advance(DAY)
    world.add("z-late.json", JSON)
    world.run()
    found = ds.dataset(saved(world, tmp_path), format="parquet", partitioning="hive")
    one_day = [*found.get_fragments(ds.field("output_date") == TODAY.isoformat())]
    assert 0 < len(one_day) < len([*found.get_fragments()])
    groups = [
        group
        for fragment in found.get_fragments()
        for group in fragment.split_by_row_group(
            ds.field("source_key") == f"{PARTITION.prefix}z-late.json"
        )
    ]
    assert len(groups) == 1


def test_outputs_of_rows_have_no_slices_there_either(world: World) -> None:
    kept, world.settings = world.settings, World().settings
    world.run()
    world.add("rows.json", JSON)
    world.run()
    make_columnar(world, "rows.json")
    world.settings = kept
    world.run()
    must_tell_what_is_exported(world)
    assert {row[9] is None for row in told(world)} == {True, False}


def test_how_far_it_is_stands_in_a_document_that_is_told(world: World) -> None:
    world.run()
    newest = entries(world)[max(entries(world))]
    note = json.loads(world.store.contents("lake")[THROUGH])
    assert note == {"version": 1, "sequence": newest.sequence, "commit_id": newest.commit_id}
    assert set(note) == set(table_of("Through"))


# Run after run


def test_every_commit_leaves_one_object_that_no_later_run_touches(world: World) -> None:
    world.run()
    before = objects(world)
    assert len(before) == sum(bool(one.rows) for one in entries(world).values()) > 1
    must_tell_what_is_exported(world)
    world.clock.advance(DAY)
    world.add("late.json", JSON)
    world.run()
    after = objects(world)
    assert len(after) == len(before) + 1
    assert {name: after[name] for name in before} == before
    must_tell_what_is_exported(world)


def test_a_run_with_nothing_to_do_writes_nothing_of_it(world: World) -> None:
    world.run()
    world.store.calls.clear()
    world.must_be_finished()
    below = [one for one in world.store.calls if one.key.startswith(f"{STATE}manifest/")]
    assert [(one.name, one.key) for one in below] == [("get", THROUGH)]
    assert read_rest(world.settings, PARTITION, world.store) is not None


def test_without_the_setting_there_is_no_table() -> None:
    world = World()
    world.add_variety()
    world.run()
    assert not world.store.contents("lake", f"{STATE}manifest/")


def test_a_state_of_before_gets_its_table_once_the_setting_is_there() -> None:
    world = World()
    world.add_variety()
    world.run()
    void_and_again(world)
    world.settings = world_of().settings
    world.run()
    must_tell_what_is_exported(world)


def void_and_again(world: World) -> None:
    """Later data, a commit that becomes void, and the run that compacts its sources again."""
    world.clock.advance(DAY)
    world.add("late.json", JSON)
    world.run()
    world.make_void(max(entries(world)))
    world.run()


def test_what_became_void_is_told_no_more_and_its_sources_are_once_compacted_again(
    world: World,
) -> None:
    world.run()
    void_and_again(world)
    must_tell_what_is_exported(world)
    (late,) = [row for row in told(world) if row[2].endswith("late.json")]
    assert late[6].removeprefix("s3://lake/") in world.store.contents("lake", "compacted/")


def deliver_again(world: World, name: str, etag: str) -> None:
    key = PARTITION.prefix + name
    body = world.store.contents("source")[key]
    world.store.seed("source", key, body, etag=etag, last_modified=NOW - DAY)


def test_what_came_again_is_told_where_its_content_is(world: World) -> None:
    world.run()
    for etag in ("second", "third"):
        world.clock.advance(DAY)
        deliver_again(world, "a.json", etag)
        assert world.run().counts.delivered_again == 1
    must_tell_what_is_exported(world)
    again = [row for row in told(world) if row[-1]]
    assert [row[3] for row in again] == ["second", "third"]
    # Beside the commit that has the content, on the day of that.
    names = [name for name in objects(world) if name.count("-000000") == 2]
    assert len(names) == 2
    assert all(name.startswith(f"output_date={TODAY}/") for name in names)


def test_what_came_again_is_told_no_more_once_its_content_is_taken_back() -> None:
    world = world_of()
    world.add("a.json", JSON)
    world.run()
    world.clock.advance(DAY)
    world.add("b.json", JSON)
    world.run()
    original = world.store.contents("source")[f"{PARTITION.prefix}a.json"]
    deliver_again(world, "a.json", "second")
    assert world.run().counts.delivered_again == 1
    assert sum(row[-1] for row in told(world)) == 1
    etag = entries(world)[1].rows[0].source.etag
    world.store.seed("source", f"{PARTITION.prefix}a.json", original, etag=etag)
    world.make_void(1)
    world.run()
    must_tell_what_is_exported(world)
    assert sum(row[-1] for row in told(world)) == 0


def of_two_kinds() -> World:
    """A world whose second commit has a source of its own, and says of another that it came again.

    The second commit is the one to become void.
    """
    world = World()
    world.add("a.json", JSON)
    world.run()
    world.clock.advance(DAY)
    world.add("b.json", JSON)
    deliver_again(world, "a.json", "second")
    assert world.run().counts.delivered_again == 1
    second = entries(world)[2]
    assert (len(second.rows), len(second.again)) == (1, 1)
    return world


@pytest.mark.parametrize("told_before", [True, False])
def test_what_a_commit_said_of_others_goes_with_it_when_it_is_taken_back(
    *, told_before: bool
) -> None:
    world = of_two_kinds()
    if told_before:
        bring_up_to_date(log_of(world), world.store)
        assert sum(row[-1] for row in told(world)) == 1
    world.make_void(2)
    bring_up_to_date(log_of(world), world.store)
    must_tell_what_is_exported(world)
    assert {row[-2] for row in told(world)} == {1}


def test_what_is_said_to_be_where_nothing_is_any_more_is_not_told() -> None:
    world = World()
    world.add("a.json", JSON)
    world.add("b.log", LOG_LINE)
    world.run()
    source = entries(world)[1].rows[0].source
    world.make_void(1)
    bring_up_to_date(log_of(world), world.store)
    # A run that looked before that writes down afterwards what it saw.
    log = CommitLog(world.store, world.settings, PARTITION)
    late = Again(replace(source, etag="late"), 1, None, None)
    log.append(log.load(), Commit.of_returned((late,), "late", world.clock.now(), "source"))
    bring_up_to_date(log_of(world), world.store)
    must_tell_what_is_exported(world)
    assert {row[-2] for row in told(world)} == {2}


def test_a_commit_that_never_became_readable_is_never_told(world: World) -> None:
    waiting(world)
    lose_every_upload(world)
    world.store.hooks.after.append(readable_only(world))
    world.run()
    assert any(one.replaces for one in entries(world).values())
    must_tell_what_is_exported(world)


def readable_only(world: World) -> Callable[[Call], None]:
    """A hook: whatever the table tells of can be read."""

    def look(call: Call) -> None:
        if call.key.startswith(TABLE) and call.name in {"create", "put"}:
            there = {f"s3://lake/{key}" for key in world.store.contents("lake", "compacted/")}
            assert {row[6] for row in told(world)} - {None} <= there

    return look


class Short:
    """Time for nothing but the end of a call."""

    def remaining_seconds(self) -> float:
        return 20.0


def test_what_is_not_published_yet_is_not_told(world: World) -> None:
    waiting(world)
    run = PartitionRun(
        PARTITION, world.settings, world.store, world.clock, Short(), "run-9", reserve_seconds=30.0
    )
    assert record_partition(run, Counts()).status == "more"
    assert not objects(world)
    world.run()
    must_tell_what_is_exported(world)


# Killed, late, twice


def requests_of_two_runs() -> int:
    made = world_of()
    made.add_variety()
    two_runs(made)
    return len(made.store.calls)


def two_runs(world: World) -> None:
    world.run()
    world.add("late.json", JSON)
    deliver_again(world, "a.json", "second")
    world.run()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(1, requests_of_two_runs() + 1, 3))
def test_killed_at_any_request_the_next_run_tells_what_is_missing(
    world: World, number: int, moment: str
) -> None:
    world.store.hooks.after.append(readable_only(world))
    with death(world, number, moment):
        two_runs(world)
    two_runs(world)
    must_tell_what_is_exported(world)


@pytest.mark.parametrize("number", range(1, requests_of_two_runs() + 1, 7))
def test_another_worker_may_do_everything_at_any_request(world: World, number: int) -> None:
    world.store.hooks.after.append(readable_only(world))
    world.store.hooks.before.append(at_call(number, world.run))
    two_runs(world)
    world.run()
    must_tell_what_is_exported(world)


def requests_of_catching_up() -> int:
    world, table, known = behind()
    world.store.calls.clear()
    table.catch_up(known, EVER)
    return len(world.store.calls)


class Left:
    """A deadline with so many looks at it."""

    def __init__(self, looks: float) -> None:
        self.looks = looks

    def remaining_seconds(self) -> float:
        self.looks -= 1
        return 900.0 if self.looks >= 0 else 0.0


EVER = Left(float("inf"))


def behind() -> tuple[World, ManifestTable, KnownLog]:
    """A world whose table tells of nothing yet: three commits, the last of what came again."""
    world = World()
    world.add("a.json", JSON)
    world.run()
    world.clock.advance(DAY)
    world.add("b.json", JSON)
    world.run()
    world.clock.advance(DAY)
    deliver_again(world, "a.json", "second")
    world.run()
    table = ManifestTable(world.settings.state, PARTITION.path, world.store)
    return world, table, KnownLog(last=3, since=3)


@pytest.mark.parametrize("number", range(1, requests_of_catching_up() + 1))
@pytest.mark.parametrize("undone", [1, 2])
def test_whoever_is_late_does_not_bring_back_what_was_undone(number: int, undone: int) -> None:
    world, table, known = behind()

    def meanwhile() -> None:
        world.store.hooks.clear()
        first = entries(world)[1].rows[0].source
        body = world.store.contents("source")[first.key]
        world.store.seed("source", first.key, body, etag=first.etag)
        world.make_void(undone)
        bring_up_to_date(log_of(world), world.store)

    world.store.hooks.before.append(at_call(number, meanwhile))
    table.catch_up(known, EVER)
    bring_up_to_date(log_of(world), world.store)
    must_tell_what_is_exported(world)
    assert undone not in {row[-2] for row in told(world)}


def log_of(world: World) -> StoredLog:
    return one_log(world.settings.state, PARTITION.path, world.store)


@pytest.mark.parametrize("looks", range(7))
def test_what_time_did_not_allow_the_next_call_does(looks: int) -> None:
    world, table, known = behind()
    left = table.catch_up(known, Left(looks))
    # Three looks go to finding out what is void.
    assert left == 3 - max(0, looks - 3)
    done = len(objects(world))
    world.store.calls.clear()
    assert table.catch_up(known, EVER) == 0
    assert world.store.count("create") == 3 - done
    must_tell_what_is_exported(world)


def test_a_table_that_cannot_be_written_costs_no_run_its_success_and_is_told(
    world: World,
) -> None:
    def refuse(call: Call) -> None:
        if call.name == "create" and call.key.startswith(TABLE):
            raise TransientStoreError("no answer")

    world.store.hooks.before.append(refuse)
    receipt = world.run()
    fault = "TransientStoreError: no answer"
    assert (receipt.status, receipt.manifest_fault) == ("done", fault)
    assert not objects(world)
    # So that discovery does not pass over it.
    assert read_rest(world.settings, PARTITION, world.store) is None
    gathered = Gathered()
    for _ in range(7):
        gathered.add(receipt)
    again = Gathered.from_state(gathered.state())
    assert again.warnings == [
        *[f"not all in the manifest table: {PARTITION.path}: {fault}"] * 5,
        "and 2 more partitions are not all in the manifest table",
    ]
    world.store.hooks.clear()
    assert world.run().manifest_fault == ""
    must_tell_what_is_exported(world)
    assert read_rest(world.settings, PARTITION, world.store) is not None


def test_a_worker_whose_time_is_over_says_how_much_is_not_told(world: World) -> None:
    run = PartitionRun(
        PARTITION, world.settings, world.store, world.clock, Nearly(), "run-1", reserve_seconds=1.0
    )
    receipt: Receipt = record_partition(run, Counts())
    assert receipt.status == "done"
    assert receipt.manifest_fault == f"time ran out, {len(entries(world))} commits are not in it"
    world.run()
    must_tell_what_is_exported(world)


class Nearly:
    """Time for all groups, and then for no more."""

    def remaining_seconds(self) -> float:
        return 14.9


def test_a_table_of_another_log_is_told_and_left_as_it_is(world: World) -> None:
    world.run()
    document = json.loads(world.store.contents("lake")[THROUGH])
    stranger = {**document, "sequence": 1, "commit_id": "of another"}
    world.store.seed("lake", THROUGH, json.dumps(stranger).encode())
    checkpoint = next(k for k in world.store.contents("lake") if k.endswith("checkpoint.json.gz"))
    world.store.remove("lake", checkpoint)
    before = objects(world)
    world.add("late.json", JSON)
    receipt = world.run()
    assert receipt.status == "done"
    assert "was made of another log of 2026/01/02/" in receipt.manifest_fault
    assert "s3://lake/_compactor/compacted/manifest/" in receipt.manifest_fault
    assert objects(world) == before


# The command line


@pytest.fixture
def command(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setattr(manifest, "open_store", lambda *_: world.store)

    def run(*words: str) -> tuple[int, str, str]:
        return main([*words]), *capsys.readouterr()

    return run


def test_the_command_makes_the_table_of_a_state_that_has_none(
    world: World, command: Command
) -> None:
    world.settings = World().settings
    world.run()
    void_and_again(world)
    assert not objects(world)
    code, out, err = command("manifest", "s3://lake/compacted/", "--manifest-table")
    assert (code, err) == (0, "")
    assert out == f"s3://lake/{TABLE}: 1 partition\n"
    must_tell_what_is_exported(world)
    before = world.store.contents("lake", f"{STATE}manifest/")
    code, out, _ = command("manifest", "s3://lake/compacted/", "--manifest-table", "--json")
    assert json.loads(out) == {
        "table": f"s3://lake/{TABLE}", "partitions": 1, "failed": 0, "behind": 0,
    }  # fmt: skip
    assert world.store.contents("lake", f"{STATE}manifest/") == before


def test_what_nobody_can_read_yet_waits_for_the_run_that_publishes_it(
    world: World, command: Command
) -> None:
    world.run()
    world.add("late.json", JSON)
    world.store.hooks.crash("before", "complete_upload")
    with pytest.raises(Crashed):
        world.run()
    world.store.hooks.clear()
    before = objects(world)
    code, out, _ = command("manifest", "s3://lake/compacted/", "--manifest-table")
    assert (code, out) == (0, f"s3://lake/{TABLE}: 1 partition; 1 commit left for the next run\n")
    assert objects(world) == before
    world.run()
    must_tell_what_is_exported(world)


def test_a_commit_that_was_replaced_does_not_keep_later_ones_waiting() -> None:
    world = World()
    world.add("a.json", JSON)
    waiting(world)
    lose_every_upload(world)
    # Nobody can build that output again.
    world.put("a.json", b'{"id": "other"}')

    def die(call: Call) -> None:
        if call.key.endswith("checkpoint.json.gz"):
            raise Crashed

    world.store.hooks.before.append(die)
    with pytest.raises(Crashed):
        world.run()
    world.store.hooks.clear()
    assert any(one.replaces and one.output is None for one in entries(world).values())
    assert bring_up_to_date(log_of(world), world.store) == 0
    must_tell_what_is_exported(world)


def test_a_damaged_entry_is_told_with_its_partition(world: World, command: Command) -> None:
    world.settings = World().settings
    world.run()
    world.store.seed("lake", STATE + layout.entry_name(PARTITION.path, 1), b"damaged")
    code, _, err = command("manifest", "s3://lake/compacted/", "--manifest-table")
    assert code == 1
    assert err.startswith("2026/01/02/: IntegrityError: s3://lake/_compactor/")
    assert "the manifest table does not tell all of 1 partition" in err


def test_a_table_that_tells_of_more_than_the_log_has_is_told(
    world: World, command: Command
) -> None:
    world.run()
    note = {"version": 1, "sequence": 99, "commit_id": "gone"}
    world.store.seed("lake", THROUGH, json.dumps(note).encode())
    code, _, err = command("manifest", "s3://lake/compacted/", "--manifest-table")
    assert (code, "was made of another log" in err) == (1, True)


@pytest.mark.parametrize(
    ("words", "refused"), [("-o x", "--output: 'x'"), ("--format parquet", "--format: 'parquet'")]
)
def test_an_export_and_the_table_are_not_written_at_once(
    command: Command, words: str, refused: str
) -> None:
    place = ("manifest", "s3://lake/compacted/", "--manifest-table")
    code, _, err = command(*place, *words.split())
    assert (code, f"InvalidInput: {refused}" in err) == (2, True)
