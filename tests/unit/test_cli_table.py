"""``compactor table`` against moto: what it prints, switches and lists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from compactor.catalogs.readers import open_readers
from compactor.readers import expired_lists as old_lists
from compactor_cli.commands import main
from tests.support.moto_server import moto_server

PLACES = ("s3://my-logs/raw/", "s3://my-lake/compacted/")
WINDOW = ("--date-format", "%Y/%m/%d", "--window", "2026-01-02..2026-01-03")
NOW = ("--settle-seconds", "0", "--workers", "1")
NAMED = ("--reader-table", "glue:lake.logs")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with moto_server() as url:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        s3 = boto3.client("s3", region_name="us-east-1", endpoint_url=url)
        s3.create_bucket(Bucket="my-logs")
        s3.create_bucket(Bucket="my-lake")
        for day in ("02", "03"):
            for number in range(3):
                body = "".join(f'{{"id": {number + 1}{n}, "n": "{day}"}}\n' for n in range(2))
                key = f"raw/2026/01/{day}/{number}.json"
                s3.put_object(Bucket="my-logs", Key=key, Body=body.encode())
        glue = boto3.client("glue", region_name="us-east-1", endpoint_url=url)
        glue.create_database(DatabaseInput={"Name": "lake"})
        for name in ("AWS_DEFAULT_REGION",):
            monkeypatch.setenv(name, "us-east-1")
        open_readers.cache_clear()
        yield url
        open_readers.cache_clear()


@pytest.fixture
def table(aws: str, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(action: str, *words: str, named: bool = True) -> tuple[int, str, str]:
        code = main(["table", action, *PLACES, *WINDOW, *(NAMED if named else ()), *words])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_a_column_and_a_partition_of_one_name_are_refused(table: Any) -> None:
    words = ("--reader-partitions", "n", "--reader-partitions", "m", "--reader-partitions", "d")
    code, out, _ = table("refresh", *words)
    assert code == 1
    assert "other names than the columns have: n" in out


def test_a_refresh_adds_partitions_and_switches_them(table: Any) -> None:
    code, out, err = table("refresh")
    assert code == 0, err
    assert "2 partitions switched; 2 show sources, 0 outputs, 0 a list" in out
    assert main(["run", *PLACES, *WINDOW, *NOW]) == 0
    code, out, _ = table("refresh", "--json")
    document = json.loads(out[out.index("{") :])
    assert {one["shows"] for one in document["partitions"]} == {"compacted"}
    code, out, _ = table("show", "--json")
    (first, second) = json.loads(out)["partitions"]
    assert (first["path"], first["shows"], first["wanted"]) == ("2026/01/02/", *["compacted"] * 2)
    assert second["invisible"] == 0
    s3 = boto3.client("s3")
    s3.put_object(Bucket="my-logs", Key="raw/2026/01/02/late.json", Body=b'{"id": 99}\n')
    _, out, _ = table("show", "--partition", "2026/01/02")
    assert "listed" in out
    code, out, _ = table("refresh", "--partition", "2026/01/02")
    assert "1 partitions switched; 0 show sources, 0 outputs, 1 a list of 2 objects" in out


def test_old_lists_are_deleted_when_that_is_said(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["run", *PLACES, *WINDOW, *NOW]) == 0
    s3 = boto3.client("s3")
    for number in range(2):
        s3.put_object(Bucket="my-logs", Key=f"raw/2026/01/02/late{number}.json", Body=b"{}\n")
        assert table("refresh")[0] == 0
    code, out, _ = table("refresh", "--delete-old-lists")
    assert code == 0
    assert "0 old lists deleted; 1 kept for now" in out
    # Nobody waits an hour here.
    monkeypatch.setattr(old_lists, "_grace", lambda *_: 0.0)
    assert "1 old list deleted; 0 kept for now" in table("refresh", "--delete-old-lists")[1]
    _, out, _ = table("refresh", "--delete-old-lists", "--json")
    document = json.loads(out[out.index("{") :])
    assert document["old_lists"] == {"deleted": 0, "kept": 0, "faults": []}
    found = s3.list_objects_v2(Bucket="my-lake", Prefix="compactor-readers/")["Contents"]
    assert len(found) == 1


@pytest.mark.parametrize("action", ["show", "refresh"])
def test_a_table_must_be_named(table: Any, action: str) -> None:
    code, _, err = table(action, named=False)
    assert code == 2
    assert "--reader-table" in err


def test_a_database_that_is_not_there_is_reported_in_one_line(table: Any) -> None:
    code, out, err = table("refresh", "--reader-table", "glue:nowhere.logs")
    assert (code, err) == (1, "")
    assert "'glue:nowhere.logs' is not accepted; expected a table in a database" in out
