"""Rows of logs whose records have few members in common."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from compactor.rows.ddl import parse_ddl
from compactor.rows.json_rows import JsonRows
from compactor.rows.json_values import TOO_DEEP
from compactor.rows.schema import simple
from tests.rows.row_world import RowWorld, account


def audit(number: int) -> dict[str, Any]:
    """A record of Kubernetes' audit log; its object depends on the resource."""
    kinds = (
        {"replicas": number, "selector": {"app": "a"}},
        {"data": {"key": "value"}, "immutable": True},
        {"ports": [80, 443.5], "clusterIP": None, "type": "é"},
    )
    return {
        "kind": "Event",
        "auditID": f"id-{number}",
        "user": {"username": "ann", "groups": ["system", "dev"]},
        "requestObject": kinds[number % 3],
    }


def waf(number: int) -> dict[str, Any]:
    headers = [{"name": f"h{n}", "value": str(number)} for n in range(number % 4)]
    return {
        "timestamp": 1_700_000_000_000 + number,
        "action": "ALLOW",
        "rateBasedRuleList": [],
        "httpRequest": {"clientIp": "192.0.2.1", "headers": headers, "uri": "/"},
    }


def test_objects_that_share_few_members_are_their_json() -> None:
    world = RowWorld()
    world.put_lines("1.json", *map(audit, range(30)))
    world.run()
    rows = {row["auditID"]: row for row in world.rows()}
    assert len(rows) == 30
    for number in range(30):
        row, record = rows[f"id-{number}"], audit(number)
        assert json.loads(row["requestObject"]) == record["requestObject"]
        assert row["user"] == record["user"]
    world.put_lines("2.json", {"auditID": "new", "requestObject": {"never": ["seen"]}})
    world.run()
    assert '{"never":["seen"]}' in {row["requestObject"] for row in world.rows()}
    assert world.dead_letters() == []


def test_objects_of_one_shape_stay_structs() -> None:
    world = RowWorld()
    world.put_lines("1.json", *map(waf, range(30)))
    world.run()
    rows = sorted(world.rows(), key=lambda row: row["timestamp"])
    assert [row["httpRequest"] for row in rows] == [waf(n)["httpRequest"] for n in range(30)]


def test_objects_of_too_many_members_are_their_json() -> None:
    world = RowWorld()
    wide, narrow = ({f"m{n:03}": n for n in range(most)} for most in (201, 200))
    world.put_lines("1.json", {"wide": wide, "narrow": narrow})
    world.run()
    (row,) = world.rows()
    assert json.loads(row["wide"]) == wide
    assert row["narrow"] == narrow


def test_declared_structs_take_them_apart() -> None:
    world = RowWorld(parquet_schema="auditID STRING, requestObject STRUCT<replicas: INT>")
    fits = {"auditID": "a", "requestObject": {"replicas": 3}}
    other = {"auditID": "b", "requestObject": {"data": 1}}
    world.put_lines("1.json", fits, other, {**fits, "auditID": "c"})
    world.run()
    assert [row["auditID"] for row in world.rows()] == ["a", "c"]
    (reason,) = world.dead_letters()
    assert "requestObject.data is not in the schema" in reason["reason"]


@pytest.mark.parametrize(
    "twice",
    [
        '{"a": 1, "a": 1}',
        '{"a": null, "a": 1}',
        '{"a": {"x": 1, "x": 1}}',
        '{"a" : 1, "a" : 1}',
        '{"a": ":", "b": "\\":", "a": ":"}',
        '{"b:": ":\\"", "b:": ":"}',
        '{"t": {"x": {"y": 1, "y": 1}}}',
        '{"l": [{"x": 1}, {"x": 1, "x": 1}]}',
    ],
)
def test_a_name_that_occurs_twice_is_noticed_beside_any_other_records(twice: str) -> None:
    record = json.loads(twice)
    usual = [{**record, "n": number} for number in range(3)]
    usual += [{"t": 'text ":x": , ":', "n": 3}, {"t": ':":', "n": 4}] if "t" in record else []
    world = RowWorld()
    lines = [json.dumps(one) for one in usual]
    lines.insert(2, twice)
    world.put("1.json", "\n".join(lines).encode())
    world.run()
    assert sorted(row["n"] for row in world.rows()) == list(range(len(usual)))
    assert [record for record, _ in world.reasons()] == [twice]


@pytest.mark.parametrize("levels", [201, 900, 990, 5_000])
def test_a_text_column_takes_no_value_that_is_too_deep(levels: int) -> None:
    deep = '{"s": ' + '{"a":' * levels + "1" + "}" * levels + "}"
    rows = JsonRows(parse_ddl("s STRING")).convert([deep.encode(), b'{"s": "x"}'])
    assert rows.table["s"].to_pylist() == ["x"]
    assert rows.misfits == {0: TOO_DEEP}


def test_rows_keep_their_order_around_a_record_that_fits_only_by_itself() -> None:
    ddl = "at TIMESTAMP, n INT, m MAP<STRING, INT>"
    assert simple(parse_ddl(ddl))
    world = RowWorld(parquet_schema=ddl)
    repeated = '{"n": 1, "n": 2, "m": {"a": 1}}'
    lines = ['{"n": 0}', repeated, '{"n": "no"}', '{"n": 3, "at": 1700000000}', '{"n": 4}']
    world.put("1.json", "\n".join(lines).encode())
    (commit,) = world.run()
    assert world.table()["n"].to_pylist() == [0, 2, 3, 4]
    assert account(commit).rows_in == account(commit).rows_out + 1
    assert len(world.dead_letters()) == 1


def test_real_cloudtrail_logs_are_rows_without_a_dead_letter(real_cloudtrail: Path) -> None:
    world, records = RowWorld(), []
    for number, path in enumerate(sorted(real_cloudtrail.rglob("*.json.gz"))):
        world.put(f"{number:03}.json.gz", path.read_bytes())
        records += json.loads(gzip.decompress(path.read_bytes()))["Records"]
    world.run()
    assert world.dead_letters() == []
    rows = {row["eventID"]: row for row in world.rows()}
    assert len(rows) == len({record["eventID"] for record in records})
    for record in records:
        row = rows[record["eventID"]]
        for name in ("requestParameters", "responseElements", "additionalEventData"):
            text = row[name]
            assert (None if text is None else json.loads(text)) == record.get(name)
        assert row["eventTime"] == record["eventTime"]
        assert (
            row["userIdentity"].items()
            >= {
                name: value
                for name, value in record["userIdentity"].items()
                if isinstance(value, str)
            }.items()
        )
