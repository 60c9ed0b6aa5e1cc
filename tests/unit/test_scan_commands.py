"""The commands that a scan ends with: pasted into a shell they do what the scan has shown."""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import boto3
import pytest
from moto.s3.models import s3_backends

from compactor_cli.commands import main
from tests.support.moto_server import moto_server

TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
DAYS = [TODAY - timedelta(days=n) for n in range(1, 5)]
ACCOUNTS = ("111122223333", "444455556666")
JSON = b'{"a": 1}\n'
_NUMBERS = count()
Put = Callable[[str, bytes, datetime], None]


def hive(put: Put) -> None:
    for day in DAYS:
        for n in range(8):
            key = f"logs/it's {n % 2}/dt={day:%Y-%m-%d}/{n}.json.gz"
            put(key, gzip.compress(JSON), day + timedelta(hours=n))


def aws_logs(put: Put) -> None:
    for day in DAYS:
        for n in range(8):
            account = ACCOUNTS[n % 2]
            place = f"logs/AWSLogs/{account}/CloudTrail/eu-west-1/{day:%Y/%m/%d}"
            name = f"{account}_CloudTrail_eu-west-1_{day:%Y%m%d}T{n:02}00Z_{n:016}.json.gz"
            body = gzip.compress(b'{"Records":[{"eventVersion":"1.08"}]}')
            put(f"{place}/{name}", body, day + timedelta(hours=n, minutes=5))


def firehose(put: Put) -> None:
    for day in DAYS[:2]:
        for n in range(16):
            hour = day + timedelta(hours=n // 4)
            name = f"stream-1-{hour:%Y-%m-%d-%H}-{n % 4:02}-00-uuid{n}"
            put(f"logs/{hour:%Y/%m/%d/%H}/{name}", JSON.strip() * 3, hour + timedelta(minutes=9))


def tables(put: Put) -> None:
    for day in DAYS[:2]:
        for n in range(16):
            body = b"id,name,amount\n%d,Li,1.5\n%d,Bo,2.5\n" % (n, n + 99)
            put(f"logs/{day:%Y/%m/%d}/orders-{n}.csv", body, day + timedelta(minutes=n))


def flat(put: Put) -> None:
    for n in range(32):
        put(f"logs/events-{n:04}.json", JSON, DAYS[0] + timedelta(minutes=n))


def mixed(put: Put) -> None:
    for day in DAYS:
        for n in range(4):
            put(f"logs/app/{day:%Y/%m/%d}/{n}.json", JSON, day + timedelta(hours=n))
            put(f"logs/web/day={day:%Y%m%d}/{n}.json", JSON, day + timedelta(hours=n))


# The sources, and how many inputs there are in the end.
LAYOUTS: dict[str, tuple[Callable[[Put], None], int]] = {
    "Hive-style dates": (hive, 1),
    "AWSLogs with accounts and regions": (aws_logs, 1),
    "Firehose by the hour": (firehose, 1),
    "flat without dates": (flat, 1),
    "CSV by the day": (tables, 1),
    "two layouts beside each other": (mixed, 2),
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of one that is not there yet."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return f"scanned-{next(_NUMBERS)}"


def filled(endpoint: str, bucket: str, fill: Callable[[Put], None]) -> int:
    """Sources as old as their producer would have made them; how many."""
    s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    s3.create_bucket(Bucket=bucket)
    keys = []

    def put(key: str, body: bytes, at: datetime) -> None:
        s3.put_object(Bucket=bucket, Key=key, Body=body)
        stored = s3_backends["123456789012"]["aws"].buckets[bucket].keys[key]
        stored.last_modified = at.replace(tzinfo=None)
        keys.append(key)

    fill(put)
    return len(keys)


def answer(capsys: pytest.CaptureFixture[str], words: list[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(words) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("name", LAYOUTS)
def test_plan_and_run_take_what_the_scan_counted(
    name: str, endpoint: str, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill, inputs = LAYOUTS[name]
    many = filled(endpoint, bucket, fill)
    scan = answer(capsys, ["scan", f"s3://{bucket}/logs/", "--endpoint-url", endpoint, "--json"])
    assert len(scan["jobs"]) == inputs
    assert sum(one["layout"]["objects"] for one in scan["jobs"]) == many
    for one in scan["jobs"]:
        candidate = one["layout"]
        program, *words = shlex.split(one["plan"])
        assert program == "compactor"
        plan = answer(capsys, [*words, "--json"])
        assert plan["totals"]["objects"] == candidate["objects"]
        assert plan["totals"]["partitions"] == candidate["partitions"]
        assert plan["totals"]["groups"] == candidate["outputs"]
        assert plan["totals"]["skipped"] == {}
        program, *words = shlex.split(one["run"])
        assert program == "compactor"
        run = answer(capsys, [*words, "--json", "--workers", "1"])["summary"]
        assert (run["status"], run["objects_before"]) == ("succeeded", candidate["objects"])
        assert run["objects_after"] == candidate["outputs"]


def test_the_commands_are_printed_as_a_shell_takes_them(
    endpoint: str, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(endpoint, bucket, aws_logs)
    words = ["scan", f"s3://{bucket}/logs/", "--endpoint-url", endpoint]
    scan = answer(capsys, [*words, "--json"])
    assert main(words) == 0
    printed = capsys.readouterr().out.splitlines()
    (one,) = scan["jobs"]
    box = printed[printed.index("Next") + 1 :]
    shown = [line for line in box if not line.startswith("#")]
    assert shown == [one["plan"], one["run"], one["verify"]]
    assert f"'s3://{bucket}/logs/AWSLogs/*/CloudTrail/*/'" in one["run"]


@pytest.mark.parametrize("marker", ["logs/t/_delta_log/0.json", "logs/t/metadata/v1.metadata.json"])
def test_scan_plan_and_run_name_the_command_for_the_tables_among_sources(
    marker: str, endpoint: str, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def table(put: Put) -> None:
        flat(put)
        put(marker, JSON, DAYS[0])
        put("logs/t/part.json", JSON, DAYS[0])

    filled(endpoint, bucket, table)
    source, destination = f"s3://{bucket}/logs/", f"s3://{bucket}/out/"
    for words in (["scan", source], ["plan", source, destination], ["run", source, destination]):
        assert main([*words, "--endpoint-url", endpoint]) == 0
        printed = capsys.readouterr().out
        (line,) = (one for one in printed.splitlines() if "2 objects, part_of_a_table" in one)
        assert "compactor maintain plan shows" in line
