"""What a first hour with one's own bucket meets: commands that find nothing say why."""

from __future__ import annotations

import itertools
import json
import re
import time

import pytest

from compactor_cli.commands import main
from compactor_local.embedded import EmbeddedS3, SeedObject

DAY = 86_400
_names = itertools.count(1)


class Bucket:
    """Objects by key, of a given age, on a server; and commands about them."""

    def __init__(self, s3: EmbeddedS3, capsys: pytest.CaptureFixture[str]) -> None:
        self.name = f"hour-{next(_names)}"
        self._s3 = s3
        self._capsys = capsys
        self.put({})

    def put(self, ages: dict[str, float]) -> None:
        now = time.time()
        seeds = [SeedObject(key, b'{"id":1}\n', now - age) for key, age in ages.items()]
        self._s3.seed(self.name, seeds)

    def ask(self, name: str, source: str, *words: str) -> tuple[int, str, str]:
        places = (f"s3://{self.name}/{source}", f"s3://{self.name}/lake/")
        code = main([name, *places, "--endpoint-url", self._s3.endpoint_url, *words])
        return code, *self._capsys.readouterr()


@pytest.fixture
def bucket(s3, capsys):
    return Bucket(s3, capsys)


@pytest.mark.parametrize("name", ["plan", "run"])
def test_fresh_objects_are_reported_with_the_time_from_which_on_they_are_taken(bucket, name):
    bucket.put({"raw/a.json": 40, "raw/b.json": 30})
    code, out, _ = bucket.ask(name, "raw/")
    headline = re.sub(r"^Run \S+: succeeded, ", "", out.splitlines()[0])
    assert code == 0
    assert headline.startswith("nothing to compact: 2 objects left: younger than settle_seconds")
    assert "the oldest is 4" in headline
    assert "UTC on takes them, or give --settle-seconds 0" in headline
    code, out, _ = bucket.ask(name, "raw/", "--json")
    document = json.loads(out)
    assert (document if name == "plan" else document["summary"])["headline"].startswith(
        "nothing to compact: 2 objects left: younger"
    )


@pytest.mark.parametrize("name", ["plan", "run"])
def test_a_source_without_any_object_is_wrong_usage_and_nothing_is_written(bucket, name):
    bucket.put({"logs/a.json": DAY, "raw2/b.json": DAY})
    code, out, err = bucket.ask(name, "raw/")
    assert (code, out) == (2, "")
    assert err == (
        f"compactor: there are no objects below s3://{bucket.name}/raw/\n"
        f"  check the prefix; the bucket {bucket.name} has logs/, raw2/\n"
    )
    _, _, err = bucket.ask(name, "logs/x/")
    assert err.endswith(f"the bucket {bucket.name} has logs/a.json\n")


@pytest.mark.parametrize("name", ["plan", "run"])
def test_a_window_without_objects_is_a_warning_with_the_last_date(bucket, name):
    bucket.put({"raw/2026/01/30/a.json": DAY})
    words = ("--date-format", "%Y/%m/%d", "--window", "2026-03-01..2026-03-02")
    code, out, _ = bucket.ask(name, "raw/", *words)
    assert code == 0
    assert "nothing to compact: no object of the window" in out
    assert (
        f"warning: no object from 2026-03-01 to 2026-03-02 (%Y/%m/%d); below s3://{bucket.name}"
        "/raw/ there is 2026/; the last is 2026/01/30/" in out
    )


def test_a_second_run_says_that_all_is_compacted_already(bucket):
    bucket.put({"raw/a.json": DAY, "raw/b.json": DAY})
    code, out, _ = bucket.ask("run", "raw/")
    assert code == 0
    assert "nothing to compact" not in out
    code, out, _ = bucket.ask("run", "raw/")
    assert code == 0
    first, *rest = out.splitlines()
    left = "nothing to compact: 2 objects left: compacted already"
    assert re.fullmatch(rf"Run \S+: succeeded, {left}", first)
    assert [line.split()[0] for line in rest[1:3]] == ["Partitions", "Seconds"]
    assert not any("Compaction ratio" in line for line in rest)
    code, out, _ = bucket.ask("plan", "raw/")
    assert "Readers" not in out
    assert out.splitlines()[0] == "nothing to compact: 2 objects left: compacted already"
