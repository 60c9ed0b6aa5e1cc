"""Many small Parquet objects become one, row for row."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from compactor import layout
from compactor.encoding.parquet_footer import ParquetFooter, read_footer
from compactor.errors import IntegrityError, InvalidInput, SourceChanged
from compactor.log.columnar import Columnar
from compactor.log.entries import Commit
from compactor.outputs.restore import Wanted, find, restore
from compactor.outputs.verify import check_commit
from compactor_spark.columnar import output
from compactor_spark.columnar.groups import compact_columnar
from tests.spark.row_world import RowWorld

Rows = Callable[..., RowWorld]

EVERYTHING = """
    select id,
        cast(id as string) as text,
        if(id % 3 = 0, null, array(id, null, id + 1)) as numbers,
        map('a', id, 'b', null) as members,
        named_struct('x', id, 'deep', map(id, array('y', null))) as nested,
        cast(id as decimal(20, 4)) / 3 as amount,
        date '1066-10-14' as day,
        timestamp '1066-10-14 09:00:00.123456' as moment,
        timestamp_ntz '2026-01-02 03:04:05.000001' as local_moment,
        cast('nan' as double) as odd,
        cast(cast(id as string) as binary) as bytes,
        id % 2 = 0 as even,
        cast(null as string) as nothing
    from range({first}, {last})
"""


def account(commit: Commit) -> Columnar:
    assert commit.output is not None
    assert commit.output.columnar is not None
    return commit.output.columnar


def footer_of_output(world: RowWorld) -> ParquetFooter:
    (key,) = world.keys(world.lake, "compacted/")
    body = world.store.get(world.lake, key)
    return read_footer(lambda start, length: body[start : start + length], len(body))


def refusal(world: RowWorld) -> str:
    with pytest.raises(InvalidInput) as refused:
        world.pending()
    assert not world.uploads()
    return str(refused.value)


def test_rows_of_all_types_are_the_same_before_and_after_and_in_order(rows: Rows) -> None:
    world = rows(format="parquet")
    for number in range(5):
        first = 10 * number
        world.put_sql(f"{number}.parquet", EVERYTHING.format(first=first, last=first + 10))
    (commit,) = world.run()
    expected = world.session.sql(EVERYTHING.format(first=0, last=50))
    found = world.output()
    assert len(world.keys(world.lake, "compacted/")) == 1
    assert found.dtypes == expected.dtypes
    assert [str(row) for row in found.collect()] == [str(row) for row in expected.collect()]
    assert account(commit).rows_in == account(commit).rows_out == 50
    assert [row.facts.records for row in commit.rows if row.facts] == [10] * 5
    assert check_commit(commit, world.store) == 50


def test_columns_are_added_and_types_widened_at_any_depth(rows: Rows) -> None:
    world = rows(format="parquet")
    world.put_sql(
        "1.parquet",
        """select 1 as id, cast(0.5 as float) as share, cast(1.25 as decimal(5,2)) as price,
        named_struct('x', cast(1 as tinyint)) as inner, map('k', 1) as members""",
    )
    world.put_sql(
        "2.parquet",
        """select 'new' as name, 3000000000 as id, 0.1d as share,
        cast(1234.5678 as decimal(10,4)) as price, named_struct('y', 'z', 'x', 300) as inner,
        map('k', 3000000000) as members, array(named_struct('deep', 1)) as list""",
    )
    world.put_sql("3.parquet", "select null as name, array(named_struct('far', 'f')) as list")
    world.run()
    found = world.output()
    assert dict(found.dtypes) == {
        "id": "bigint",
        "share": "double",
        "price": "decimal(10,4)",
        "inner": "struct<x:int,y:string>",
        "members": "map<string,bigint>",
        "name": "string",
        "list": "array<struct<deep:int,far:string>>",
    }
    lists = [[tuple(one) for one in row.list or ()] for row in found.collect()]
    assert [str(row.price) for row in found.collect()] == ["1.2500", "1234.5678", "None"]
    assert [tuple(row.inner or ()) for row in found.collect()] == [(1, None), (300, "z"), ()]
    assert [row.share for row in found.collect()] == [0.5, 0.1, None]
    assert lists == [[], [(1, None)], [(None, "f")]]


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        (
            "1 as id",
            "'x' as id",
            "column id: 'int in logs/a/1.parquet, string in logs/a/2.parquet'",
        ),
        ("date '2026-01-01' as t", "timestamp '2026-01-01' as t", "column t: 'date in"),
        (
            "timestamp '2026-01-01' as t",
            "timestamp_ntz '2026-01-01' as t",
            "column t: 'timestamp in",
        ),
        ("1 as n", "1d as n", "column n: 'int in"),
        ("1 as id", "1 as ID", "column ID: 'int named id in"),
        ("named_struct('x', 1) as s", "named_struct('x', 'y') as s", "column s.x: 'int in"),
        ("array(1) as a", "array(true) as a", "column a.element: 'int in"),
        (
            "cast(1 as decimal(38,0)) as d",
            "cast(1 as decimal(38,10)) as d",
            "column d: 'decimal(38,0) in",
        ),
    ],
)
def test_types_without_a_common_one_are_refused_by_name(
    rows: Rows, one: str, two: str, told: str
) -> None:
    world = rows(format="parquet")
    world.put_sql("1.parquet", f"select {one}")
    world.put_sql("2.parquet", f"select {two}")
    said = refusal(world)
    assert said.startswith(told)
    assert "in logs/a/2.parquet' is not accepted; expected one type" in said
    assert "\n" not in said


def test_objects_that_are_no_whole_parquet_are_quarantined_and_the_others_merged(
    rows: Rows,
) -> None:
    world = rows(format="parquet")
    world.put_sql("1.parquet", "select 1 as id")
    (whole,) = world.parquet(world.session.sql("select 2 as id"), 1)
    world.put("2.parquet", whole[:-20])
    world.put("3.parquet", b"no parquet at all, but long enough")
    world.put("4.parquet", whole[:-40] + b"\xff" * 32 + whole[-8:])
    world.put("5.parquet", b"PAR1")
    world.put_sql("6.parquet", "select 6 as id")
    (commit,) = world.run()
    assert [row.id for row in world.output().collect()] == [1, 6]
    reasons = {q.source.key[-9:]: q.reason.value for q in commit.quarantined}
    assert reasons == {
        "2.parquet": "truncated",
        "3.parquet": "truncated",
        "4.parquet": "corrupt_compression",
        "5.parquet": "truncated",
    }
    assert not world.groups()


def test_a_source_that_changed_since_it_was_listed_leaves_nothing(rows: Rows) -> None:
    world = rows(format="parquet")
    world.put_sql("1.parquet", "select 1 as id")
    (group,) = world.groups()
    world.put_sql("1.parquet", "select 2 as id")
    with pytest.raises(SourceChanged):
        compact_columnar(world.session, group, world.context())
    assert not world.uploads()


def test_a_second_run_finds_nothing_to_do(rows: Rows) -> None:
    world = rows(format="parquet")
    world.put_sql("1.parquet", "select 1 as id")
    assert len(world.run()) == 1
    before = world.keys(world.lake)
    assert world.run() == []
    assert world.keys(world.lake) == before


def test_an_object_without_rows_gives_its_columns(rows: Rows) -> None:
    world = rows(format="parquet")
    world.put_sql("1.parquet", "select 1 as id, 'x' as name where false")
    (commit,) = world.run()
    assert account(commit).rows_out == 0
    assert world.output().dtypes == [("id", "int"), ("name", "string")]
    assert check_commit(commit, world.store) == 0


@pytest.mark.parametrize(("given", "codec"), [("same", "gzip"), ("zstd", "zstd"), ("none", "none")])
def test_outputs_have_the_commonest_codec_of_their_sources_or_the_one_asked_for(
    rows: Rows, given: str, codec: str
) -> None:
    world = rows(format="parquet", compression=given)
    world.put_sql("1.parquet", "select 1 as id", compression="snappy")
    world.put_sql("2.parquet", "select 2 as id", compression="gzip")
    world.put_sql("3.parquet", "select 3 as id", compression="gzip")
    (commit,) = world.run()
    assert account(commit).codec == footer_of_output(world).codec == codec


def test_many_row_groups_become_one(rows: Rows) -> None:
    world = rows(format="parquet")
    for number, body in enumerate(world.parquet(world.session.range(5_000).toDF("id"), 40)):
        world.put(f"{number:03d}.parquet", body)
    world.run()
    footer = footer_of_output(world)
    assert (footer.rows, footer.row_groups) == (5_000, 1)


def test_rows_that_read_back_otherwise_are_never_stored(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = rows(format="parquet")
    world.put_sql("1.parquet", "select id from range(10)")
    write = output._write

    def write_and_tamper(given: output.Rows, path: str, codec: str) -> object:
        found = write(given, path, codec)
        changed = world.session.range(10).selectExpr("if(id = 3, 4, id) as id")
        changed.coalesce(1).write.mode("overwrite").parquet(path)
        return found

    monkeypatch.setattr(output, "_write", write_and_tamper)
    with pytest.raises(IntegrityError, match="the hash of the rows was"):
        world.pending()
    assert not world.uploads()


def test_nothing_is_left_on_the_disk_nor_among_the_records_of_the_run(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (room := tmp_path / "room").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    world = rows(format="parquet")
    world.put_sql("1.parquet", "select 1 as id")
    world.run()
    assert list(room.iterdir()) == []
    _, prefix = layout.staging_prefix(world.settings, "run-1", "x")
    assert not world.keys(world.lake, prefix.removesuffix("x/"))


def test_a_large_object_is_copied_as_it_is_and_can_be_restored(rows: Rows) -> None:
    world = rows(format="parquet", small_object_bytes=1)
    (body,) = world.parquet(world.session.sql("select 1 as id"), 1)
    world.put("1.parquet", body)
    world.put("2.parquet", b"a large object that is no parquet")
    commits = world.run()
    (key,) = world.keys(world.lake, "compacted/")
    assert key.endswith(".parquet")
    assert world.store.get(world.lake, key) == body
    assert [len(commit.quarantined) for commit in commits] == [0, 1]
    (found,) = find(world.log.every_commit(), Wanted(frozenset({"logs/a/1.parquet"})))
    ((_, pieces),) = restore(found, world.store)
    assert b"".join(pieces) == body
