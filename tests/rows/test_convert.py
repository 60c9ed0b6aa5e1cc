"""JSON records, CSV and TSV become rows; what does not fit is kept beside them."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
import zstandard

from compactor.errors import InvalidInput, SourceChanged
from compactor.model import QuarantineReason
from compactor.outputs.verify import check_commit
from compactor.rows.schema import from_spark_json, simple
from tests.rows.row_world import RowWorld, account
from tests.support.examples import PARTITION, columns


def types(world: RowWorld) -> dict[str, str]:
    return {one.name: simple(one.type) for one in world.table().schema}


def refusal(world: RowWorld) -> str:
    with pytest.raises(InvalidInput) as refused:
        world.pending()
    assert not world.uploads()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_records_of_many_objects_become_rows_in_their_order() -> None:
    world = RowWorld()
    world.put_lines("1.json", {"id": 1, "name": "one"}, {"id": 2, "tags": ["a", "b"]})
    world.put("2.json", b"")
    world.put("3.json", b'\xef\xbb\xbf{"id": 3, "share": 0.5}\r\n\n{"id": 4, "deep": {"x": "y"}}')
    (commit,) = world.run()
    assert types(world) == {
        "deep": "struct<x:string>",
        "id": "bigint",
        "name": "string",
        "share": "double",
        "tags": "array<string>",
    }
    assert [(r["id"], r["name"], r["share"], r["tags"]) for r in world.rows()] == [
        (1, "one", None, None),
        (2, None, None, ["a", "b"]),
        (3, None, 0.5, None),
        (4, None, None, None),
    ]
    assert [row.facts.records for row in commit.rows if row.facts] == [2, 0, 2]
    assert account(commit).rows_in == account(commit).rows_out == 4
    assert account(commit).codec == "zstd"
    assert from_spark_json(account(commit).schema) == world.table().schema
    assert check_commit(commit, world.store) == 4
    assert not world.dead_letters()


def test_compressed_objects_and_documents_of_many_records_are_taken_apart() -> None:
    world = RowWorld()
    world.put("1.json.gz", gzip.compress(b'{"id": 1}\n', mtime=0))
    world.put("2.json.gz", gzip.compress(b'{"id": 2}{"id": 3}', mtime=0))
    world.put(
        "a_CloudTrail_4.json.gz", gzip.compress(b'{"Records":[{"id": 4},{"id": 5}]}', mtime=0)
    )
    world.put("5.json.zst", zstandard.compress(b'{"id": 6}\n'))
    world.run()
    assert sorted(row["id"] for row in world.rows()) == [1, 2, 3, 4, 5, 6]


def test_records_that_do_not_fit_are_kept_whole_with_the_reason() -> None:
    schema = "id BIGINT, deep STRUCT<x: INT>, d DATE"
    world = RowWorld(parquet_schema=schema, format="json_lines")
    good = b'{"id": 1, "deep": {"x": 2}, "d": "2026-01-02"}'
    bad = [
        b'{"id": "one"}',
        b'{"id": 1.5}',
        b'{"id": 99999999999999999999}',
        b'{"id": 1, "more": true}',
        b'{"id": 1, "deep": {"x": 1, "y": 2}}',
        b'{"d": "2026-01-02T03:04:05"}',
        b'{"id": 1} {"id": 2}',
        b'{"id": 1',
        b"[1]",
        b"plain text",
        b'{"id": 1, "d": "\xff"}',
    ]
    world.put("1.json", b"\n".join([good, *bad, good]))
    (commit,) = world.run()
    assert [row["id"] for row in world.rows()] == [1, 1]
    rejected = world.reasons()
    assert [record.encode("utf-8", "surrogateescape") for record, _ in rejected] == bad
    assert [reason for _, reason in rejected[:6]] == [
        'column id is bigint, and does not take "one"',
        "column id is bigint, and does not take 1.5",
        "column id is bigint, and does not take 99999999999999999999",
        "field more is not in the schema",
        "field deep.y is not in the schema",
        'column d is date, and does not take "2026-01-02T03:04:05"',
    ]
    assert all(reason.startswith("not one JSON object: ") for _, reason in rejected[6:10])
    assert rejected[10][1] == "not UTF-8 at byte 16"
    assert {one["source"] for one in world.dead_letters()} == {
        f"s3://source/{PARTITION.prefix}1.json"
    }
    assert (account(commit).rows_in, account(commit).rows_out) == (13, 2)
    assert account(commit).dead == 11
    assert world.log.load().totals("run-1").dead_letters == 11
    assert check_commit(commit, world.store) == 2


def test_lines_that_are_no_objects_leave_a_source_alone_until_its_format_is_set() -> None:
    world = RowWorld(parquet_schema="id BIGINT")
    world.put_lines("1.json", {"id": 1})
    world.put("2.json", b'{"id": 2}\n[3]\n')
    world.put("3.json", b'{"id": 4}\n{"id": "\xff"}\n')
    (commit,) = world.run()
    assert [row["id"] for row in world.rows()] == [1]
    assert {q.source.key[-6:]: q.reason for q in commit.quarantined} == {
        "2.json": QuarantineReason.UNKNOWN_FORMAT,
        "3.json": QuarantineReason.ENCODING,
    }
    assert not world.dead_letters()
    world.given["format"] = "json_lines"
    world.run()
    assert sorted(row["id"] for row in world.rows()) == [1, 2, 4]
    assert [reason.partition(": ")[0] for _, reason in world.reasons()] == [
        "not one JSON object",
        "not UTF-8 at byte 8",
    ]


def test_unknown_fields_are_found_within_arrays_and_maps() -> None:
    schema = "list ARRAY<STRUCT<x: INT>>, members MAP<STRING, STRUCT<x: INT>>, id INT"
    world = RowWorld(parquet_schema=schema)
    world.put_lines(
        "1.json",
        {"id": 1, "list": [{"x": 1}, {"x": 2}], "members": {"k": {"x": 1}, "l": {"x": None}}},
        {"id": 2, "list": [{"x": 1}, {"x": 2, "y": 3}]},
        {"id": 3, "members": {"any": {"z": 1}}},
    )
    world.run()
    assert [row["id"] for row in world.rows()] == [1]
    assert [reason for _, reason in world.reasons()] == [
        "field list.y is not in the schema",
        "field members.z is not in the schema",
    ]


def test_the_columns_that_were_found_out_first_stay_for_every_later_run() -> None:
    world = RowWorld()
    world.put_lines("1.json", {"id": 1, "name": "one"})
    world.run()
    world.put_lines("2.json", {"id": 2}, {"id": 3, "name": 3.5}, {"id": 4.5}, {"id": 5, "new": 1})
    (commit,) = world.run()
    assert types(world) == {"id": "bigint", "name": "string"}
    found = {(row["id"], row["name"]) for row in world.rows()}
    assert found == {(1, "one"), (2, None), (3, "3.5")}
    assert [reason for _, reason in world.reasons()] == [
        "column id is bigint, and does not take 4.5",
        "field new is not in the schema",
    ]
    assert account(commit).dead == 2


def test_a_given_schema_may_only_grow() -> None:
    world = RowWorld(parquet_schema="id INT, name STRING")
    world.put_lines("1.json", {"id": 1})
    world.run()
    world.put_lines("2.json", {"id": 2, "more": 0.5})
    for schema, expected in (
        ("id STRING, name STRING", "column id is int there and string here"),
        ("id INT", "column name must be string"),
        ("name STRING, id TINYINT", "column id must be int"),
    ):
        world.given["parquet_schema"] = schema
        assert expected in refusal(world)
    world.given["parquet_schema"] = "id BIGINT, name STRING, more DOUBLE"
    world.run()
    world.given["parquet_schema"] = None
    world.put_lines("3.json", {"id": 2**40})
    (commit,) = world.run()
    fields = json.loads(account(commit).schema)["fields"]
    assert [(one["name"], one["type"]) for one in fields] == [
        ("id", "long"),
        ("name", "string"),
        ("more", "double"),
    ]


@pytest.mark.parametrize(
    "schema", ["id BIGINTEGER", "id", "id INT, ID INT", "id INT,, name STRING"]
)
def test_a_schema_that_is_invalid_is_refused(schema: str) -> None:
    world = RowWorld(parquet_schema=schema)
    world.put_lines("1.json", {"id": 1})
    assert refusal(world).startswith(
        f"parquet_schema: {schema!r} is not accepted; expected a Spark"
    )


def test_a_schema_that_no_record_fits_is_refused() -> None:
    world = RowWorld(parquet_schema="ident BIGINT")
    world.put_lines("1.json", {"id": 1}, {"id": 2})
    said = refusal(world)
    assert "all 2 records of one group fit no row" in said
    assert "the first because field id is not in the schema" in said


def test_of_names_that_differ_in_case_alone_the_usual_one_is_a_column() -> None:
    world = RowWorld()
    odd: list[dict[str, Any]] = [{"Id": 9}, {"id": 8, "ID": 8}, {"deep": [{"X": 1}]}]
    usual: list[dict[str, Any]] = [
        {"id": one, "deep": [{"x": one}, {"x": None, "X": None}]} for one in range(3)
    ]
    world.put_lines("1.json", *odd, *usual)
    (commit,) = world.run()
    assert [(one["id"], one["deep"][0]["x"]) for one in world.rows()] == [(n, n) for n in range(3)]
    assert world.reasons() == [
        ('{"Id": 9}', "field Id (beside id) is not in the schema"),
        ('{"id": 8, "ID": 8}', "field ID (beside id) is not in the schema"),
        ('{"deep": [{"X": 1}]}', "field deep.X (beside x) is not in the schema"),
    ]
    assert (account(commit).rows_in, account(commit).rows_out) == (6, 3)
    assert check_commit(commit, world.store) == 3


def test_headers_that_differ_in_case_alone_are_those_of_the_first_source() -> None:
    world = RowWorld()
    world.put("1.csv", b"id,name\n1,a\n")
    world.put("2.csv", b"ID,name\n2,b\n")
    world.run()
    assert [one["id"] for one in world.rows()] == [1]
    assert world.reasons() == [("2,b", "column ID (beside id) of its header is not in the schema")]


def test_a_whole_number_that_its_column_would_round_is_rejected_alone() -> None:
    world = RowWorld()
    held = [2**53, 2**53 + 2, -(2**60), 2**80, 10**22, 0.1, 1e300, 7]
    rounded = [
        2**53 + 1,
        -(2**53) - 1,
        10**17 + 1,
        2**63 + 1,
        2**80 + 1,
        1152921504606847000,
        int("9" * 37),
        int("9" * 60),
    ]
    world.put_lines("0.json", {"n": 1.5, "deep": [{"x": 1.5}], "id": 1})
    world.run()
    world.put_lines("1.json", *({"n": one, "deep": [{"x": 1.5}]} for one in [*held, *rounded]))
    world.put_lines("2.json", {"n": 1.5, "deep": [{"x": 0}, {"x": 2**53 + 1}]}, {"id": 2**53 + 1})
    world.run()
    found = [(one["n"], one["id"]) for one in world.rows() if one["id"] != 1]
    assert found == [(float(one), None) for one in held] + [(None, 2**53 + 1)]
    expected = "is a floating-point number, which does not hold its whole number"
    assert [why for _, why in world.reasons()] == [f"column n {expected}"] * 8 + [
        f"column deep.x {expected}"
    ]
    assert [json.loads(one)["n"] for one, _ in world.reasons()] == [*rounded, 1.5]


def test_a_given_column_of_floating_point_numbers_rounds_no_whole_number() -> None:
    columns = "n DOUBLE, f FLOAT, m MAP<STRING, DOUBLE>"
    world = RowWorld(parquet_schema=columns)
    world.put_lines("1.json", {"f": 2**24}, {"f": 2**24 + 1}, {"m": {"a": 2**53, "b": 2**53 + 1}})
    world.put("2.csv", f"n,f\n{2**53},0.5\n{2**53 + 1},1\n{2**60},{2**60}\n".encode())
    world.run()
    found = {(one["n"], one["f"]) for one in world.rows()}
    assert found == {(None, 2.0**24), (2.0**53, 0.5), (2.0**60, 2.0**60)}
    assert {why.split()[1] for _, why in world.reasons()} == {"f", "m", "n"}
    assert len(world.reasons()) == 3


def test_columns_are_added_for_fields_that_json_and_csv_have_later() -> None:
    world = RowWorld(schema_evolution="add_columns")
    world.put_lines("1.json", {"id": 1, "deep": {"x": 1}})
    world.run()
    later: list[dict[str, Any]] = [{"id": 2, "more": 0.5, "none": None, "some": []}, {"ID": 3}]
    world.put_lines("2.json", *later, {"id": 4, "deep": {"y": 1}}, {"id": 5, "more": 2})
    world.put("3.csv", b"id,other\n6,yes\n")
    world.run()
    schemas = [from_spark_json(account(one).schema) for one in world.commits()]
    assert sorted(one.names for one in schemas) == [
        ["deep", "id"],
        ["deep", "id", "more"],
        ["deep", "id", "more", "other"],
    ]
    assert [one for one, _ in world.reasons()] == [
        '{"id": 2, "more": 0.5, "none": null, "some": []}',
        '{"ID": 3}',
        '{"id": 4, "deep": {"y": 1}}',
    ]
    assert sorted((one["id"], one["more"], one["other"]) for one in world.rows()) == [
        (1, None, None),
        (5, 2.0, None),
        (6, None, "yes"),
    ]


def test_objects_that_are_damaged_or_have_no_fields_are_quarantined() -> None:
    world = RowWorld()
    world.put("1.json.gz", gzip.compress(b'{"id": 1}\n', mtime=0))
    world.put("2.json.gz", gzip.compress(b'{"id": 2}\n' * 99, mtime=0)[:-9])
    world.put("3.json.gz", gzip.compress(b"plain text\n", mtime=0))
    (commit,) = world.run()
    assert [row["id"] for row in world.rows()] == [1]
    assert {q.source.key[-9:]: q.reason.value for q in commit.quarantined} == {
        "2.json.gz": "truncated",
        "3.json.gz": "unknown_format",
    }
    assert world.run() == []


def test_a_group_without_a_single_record_is_committed_without_an_output() -> None:
    world = RowWorld()
    world.put("1.csv", b"id,name\n")
    (commit,) = world.run()
    assert commit.output is None
    assert len(commit.rows) == 1
    assert world.run() == []


def test_a_source_that_changed_since_it_was_listed_leaves_nothing() -> None:
    world = RowWorld()
    world.put_lines("1.json", {"id": 1})
    (group,) = world.groups()
    world.put_lines("1.json", {"id": 2})
    with pytest.raises(SourceChanged):
        world._store(group)
    assert not world.uploads()


def test_csv_columns_go_by_the_names_in_each_header() -> None:
    world = RowWorld()
    world.put("1.csv", b'id,name,zip\n1,"O""Brien, Pat",01234\n2,"two\r\n\r\nlines",00001\r\n')
    world.put("2.csv", b"name,id,share,on\nthree,3,0.5,true\n,4,,false\n")
    world.run()
    assert types(world) == {
        "id": "bigint",
        "name": "string",
        "zip": "string",
        "share": "double",
        "on": "boolean",
    }
    assert [tuple(one.values()) for one in world.rows()] == [
        (1, 'O"Brien, Pat', "01234", None, None),
        (2, "two\r\n\r\nlines", "00001", None, None),
        (3, "three", None, 0.5, True),
        (4, None, None, None, False),
    ]


def test_csv_records_that_do_not_fit_are_kept_with_the_reason() -> None:
    schema = "id INT, name STRING, list ARRAY<INT>"
    world = RowWorld(parquet_schema=schema)
    world.put("1.csv", b"id,name\n1,one\nx,two\n3\n4,four,4\n")
    world.put("2.csv", b"id,other\n6,six\n")
    world.put("3.csv", b"id,list\n7,8\n")
    (commit,) = world.run()
    assert [(r["id"], r["name"]) for r in world.rows()] == [(1, "one")]
    assert [reason for _, reason in world.reasons()[:3]] == [
        'column id is int, and does not take "x"',
        "fields: 1, names in its header: 2",
        "fields: 3, names in its header: 2",
    ]
    assert [reason for _, reason in world.reasons()[3:]] == [
        "column other of its header is not in the schema",
        "column list is array<int>, which no CSV field holds",
    ]
    assert account(commit).rows_in == 6


def test_tsv_has_quotes_unless_none_are_declared() -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["one", 'x"y', 'two"']),
        ({"quote": "none"}, ['"one"', '"x""y"', 'two"']),
    ]
    for options, texts in cases:
        world = RowWorld(formats=columns(**options))
        world.put("1.tsv", b'id\tname\n1\t"one"\n2\t"x""y"\n3\ttwo"\n')
        world.run()
        assert [row["name"] for row in world.rows()] == texts


def test_health_checks_with_equal_first_rows_lose_none_of_them() -> None:
    schema = "ip STRING, verb STRING, path STRING"
    world = RowWorld(parquet_schema=schema, formats=columns(header=False))
    world.put("1.csv", b"10.0.0.1,GET,/health\n10.0.0.1,GET,/a\n")
    world.put("2.csv", b"10.0.0.1,GET,/health\n10.0.0.2,GET,/b\n")
    world.run()
    assert [r["path"] for r in world.rows()] == ["/health", "/a", "/health", "/b"]
    plain = RowWorld(formats=columns(header=False))
    plain.put("1.csv", b"web-1,OK\n")
    plain.put("2.csv", b"web-1,OK\n")
    plain.run()
    assert [tuple(r.values()) for r in plain.rows()] == [("web-1", "OK")] * 2
    assert plain.table().column_names == ["_c0", "_c1"]
