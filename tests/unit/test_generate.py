"""Test data: the same for the same arguments, and what other parsers expect of each kind."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from compactor_local.generate import KINDS, GeneratedObject, generate

DAY = date(2026, 1, 31)


def objects(kind: str, files: int = 50, **options) -> list[GeneratedObject]:
    return list(generate(files, 20, kinds=(kind,), start=DAY, days=2, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_determines_keys_and_bytes(kind):
    assert objects(kind) == objects(kind)
    others = objects(kind, seed=1)
    assert not {one.key for one in objects(kind)} & {one.key for one in others}


def test_keys_name_kind_and_day_and_times_fit():
    generated = list(generate(400, 5, kinds=KINDS, start=DAY, days=2))
    prefixes = {one.key.rpartition("/")[0] for one in generated}
    assert prefixes == {f"{kind}/{day}" for kind in KINDS for day in ("2026/01/31", "2026/02/01")}
    assert len({one.key for one in generated}) == 400
    midnight = datetime(2026, 1, 31, tzinfo=UTC).timestamp()
    assert all(0 < one.last_modified - midnight < 2 * 86_400 + 900 for one in generated)


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_is_what_a_parser_of_its_kind_reads(kind):
    def records_of(content: bytes) -> Any:
        if kind == "cloudtrail":
            return json.loads(gzip.decompress(content))["Records"]
        lines = content.decode().splitlines()
        if kind == "json":
            return [json.loads(line) for line in lines]
        if kind == "csv":
            rows = list(csv.reader(io.StringIO(content.decode())))
            assert {len(row) for row in rows} == {8}
            return rows[1:]
        return [datetime.fromisoformat(line.split()[0]) for line in lines]

    generated = objects(kind, 200)
    assert [len(records_of(one.content)) for one in generated] == [one.records for one in generated]
    assert 18 < sum(one.records for one in generated) / 200 < 22


@pytest.mark.parametrize("kind", ["json", "log", "csv"])
def test_a_size_takes_the_place_of_the_number_of_records(kind):
    generated = objects(kind, 200, size_bytes=30_000)
    assert 27_000 < sum(len(one.content) for one in generated) / 200 < 33_000


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("--kinds", "json,xml"), 2, "argument --kinds: json,xml: expected json, log, csv"),
        (("-f", "0"), 2, "argument -f/--files: 0: not a number from 1 on"),
        (("-f", "1"), 1, "generate_test_data.py: Could not connect to the endpoint"),
    ],
)
def test_the_script_says_in_one_line_what_is_wrong(repo_root: Path, words, code, expected):
    nowhere = {
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_MAX_ATTEMPTS": "1",
    }
    done = subprocess.run(
        [sys.executable, "scripts/generate_test_data.py", "-b", "bucket", *words],
        cwd=repo_root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **nowhere},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert expected in done.stderr.splitlines()[-1]
