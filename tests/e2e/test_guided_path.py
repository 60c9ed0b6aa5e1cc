"""From nothing to a verified run on own data: the commands that a scan prints, verbatim."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from compactor.s3.store import make_client
from compactor_cli.commands import main
from compactor_local.embedded import EmbeddedS3, SeedObject

NOW = datetime.now(UTC)
DAY, HOUR = 86_400, 3_600
MANY = 60
OLDEST = (NOW.date() - (NOW - timedelta(days=9, seconds=2 * HOUR)).date()).days
_names = itertools.count(1)


class Kind(NamedTuple):
    """Objects of one kind, and an option that the commands need; what a person has to choose."""

    name: str
    option: str
    records: int
    objects: Iterable[SeedObject]
    choice: str = ""


def seeds(form: str, body: str, age: float = 0.0, days: int = 1) -> list[SeedObject]:
    found = []
    for n in range(MANY):
        day = NOW - timedelta(days=n % days, seconds=age)
        key = day.strftime(form).format(n=n)
        found.append(SeedObject(key, body.format(n=n).encode("latin-1"), day.timestamp() - n % 50))
    return found


KINDS = (
    Kind("JSON of today", "--window today-7..today --settle-seconds 0", 2 * MANY,
         seeds("in/%Y/%m/%d/{n}.json", '{{"id": {n}}}\n{{"id": -{n}}}\n')),
    Kind("CRLF CSV of a vendor", "--settle-seconds 0", 2 * MANY,
         seeds("in/orders-{n}.csv", "No,Name,Amount\r\n{n},Li,1.50\r\n-{n},Bo,2.50\r\n")),
    Kind("CSV whose columns are all text", '"header": true', 2 * MANY,
         seeds("in/{n}.csv", "name,city\r\nana,Rome\r\nbob,Paris\r\n", 2 * DAY)),
    Kind("logs of an application", "--date-format dt=%Y-%m-%d --window today-7..today",
         2 * MANY, seeds("in/dt=%Y-%m-%d/{n}.log",
                         "2026-11-26 12:00:01 INFO began {n}\n2026-11-26 12:00:02 INFO ended {n}\n",
                         2 * HOUR, days=4)),
    Kind("text of an unknown format", '"format": "text"', 2 * MANY,
         seeds("in/{n}.txt", "DB_HOST=db{n}\nDB_PORT=17\n", 2 * DAY), "*.txt=text"),
    Kind("logs that are not UTF-8", '"encoding": "single_byte"', 2 * MANY,
         seeds("in/{n}.log", "2026-11-26 12:00:01 Zähler {n}\n2026-11-26 12:00:02 Größe {n}\n",
               2 * DAY)),
    Kind("old JSON", "--window 2024-02-28..2024-03-01", MANY,
         [SeedObject(f"in/2024/{('02/28', '02/29', '03/01')[n % 3]}/{n}.json", b'{"id":1}\n',
                     time.time() - 500 * DAY) for n in range(MANY)]),
    Kind("JSON that still arrives", f"--window today-{OLDEST}..today", MANY,
         seeds("in/%Y/%m/%d/{n}.json", '{{"id": {n}}}\n', 2 * HOUR, days=10)),
)  # fmt: skip


class Shell:
    """A directory of its own, whose commands find the embedded S3 as boto3 does."""

    def __init__(self, s3: EmbeddedS3, directory: Path) -> None:
        self.directory = directory
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        given = {**os.environ, **s3.environment, "PATH": path}
        self._environment = {name: value for name, value in given.items() if value}

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.directory,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def box(self, scan: str) -> list[str]:
        lines = self.run(scan).splitlines()
        return [one for one in lines[lines.index("Next") + 1 :] if not one.startswith("#")]


@pytest.fixture
def shell(s3: EmbeddedS3, tmp_path: Path) -> Shell:
    return Shell(s3, tmp_path)


@pytest.fixture
def bucket(s3: EmbeddedS3) -> str:
    return f"path-{next(_names)}"


def records_of(s3: EmbeddedS3, bucket: str) -> list[bytes]:
    """Every line of every output, read without the project's code."""
    client = make_client(s3.endpoint_url)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="in-compacted/")
    found: list[bytes] = []
    for one in (one for page in pages for one in page.get("Contents", ())):
        body = client.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()
        found += (gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body).splitlines()
    return found


@pytest.mark.parametrize("kind", KINDS, ids=[one.name for one in KINDS])
@pytest.mark.parametrize("save", [False, True])
def test_the_commands_of_a_scan_compact_and_verify_all_that_it_has_seen(
    kind: Kind, save: bool, s3: EmbeddedS3, shell: Shell, bucket: str
) -> None:
    s3.seed(bucket, kind.objects)
    words = f" --set '{kind.choice}'" if kind.choice else ""
    words += " --save logs" if save else ""
    plan, run, verify = shell.box(f"compactor scan s3://{bucket}/in/{words}")
    if save:
        assert plan.startswith("compactor plan logs")
        assert verify == "compactor verify logs --deep"
    else:
        assert kind.option in plan
    shell.run(plan)
    shell.run(run)
    assert f"{MANY} sources, {kind.records:,} records" in shell.run(verify)
    headers = {b"No,Name,Amount", b"name,city"}
    assert len([one for one in records_of(s3, bucket) if one not in headers]) == kind.records


def test_real_cloudtrail_takes_one_scan_and_the_commands_that_it_prints(
    s3: EmbeddedS3, shell: Shell, bucket: str, real_cloudtrail: Path
) -> None:
    files = sorted(real_cloudtrail.rglob("*.json.gz"))
    names = [f"in/{one.relative_to(real_cloudtrail).as_posix()}" for one in files]
    s3.seed(bucket, (SeedObject(n, f.read_bytes()) for n, f in zip(names, files, strict=True)))
    shown = [shell.run(one) for one in shell.box(f"compactor scan s3://{bucket}/in/ --save trail")]
    assert "44 sources, 2,611 records" in shown[-1]


def test_a_week_later_the_job_file_alone_takes_what_arrived_since(
    s3: EmbeddedS3,
    shell: Shell,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    s3.seed(bucket, seeds("in/%Y/%m/%d/{n}.json", '{{"id": {n}}}\n'))
    for command in shell.box(f"compactor scan s3://{bucket}/in/ --save logs"):
        shell.run(command)
    later = time.time() + 7 * DAY
    # Workers are other processes, with the machine's clock.
    settled = time.time() - 2 * HOUR
    for ago, n in itertools.product(range(7), range(2)):
        day = NOW + timedelta(days=7 - ago)
        new = SeedObject(f"in/{day:%Y/%m/%d}/new-{n}.json", b'{"id":0}\n', settled)
        s3.seed(bucket, [new])
    monkeypatch.chdir(shell.directory)
    for name, value in s3.environment.items():
        if value:
            monkeypatch.setenv(name, value)
    monkeypatch.setattr("compactor.clock.time.time", lambda: later)
    assert main(["run", "logs", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert (summary["objects_before"], summary["partitions"]) == (14, 8)
    monkeypatch.undo()
    assert f"{MANY + 14} sources" in shell.run("compactor verify logs --deep")
    assert "succeeded" in shell.run("compactor runs show logs")
    listed = shell.run(f"compactor ls logs in/{NOW:%Y/%m/%d}/")
    assert listed.count("\n") == MANY
