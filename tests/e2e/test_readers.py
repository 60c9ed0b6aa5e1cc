"""DuckDB reads what the catalog shows, while real runs are at work, die and clean up.

What a query reads is found here from what Glue's API says, by nothing of the product.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.reader_lake import DAYS, Lake, reader_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    with reader_lake(tmp_path, monkeypatch) as (found, _):
        yield found


def test_an_engine_reads_each_record_once_before_during_and_after_runs(lake: Lake) -> None:
    for day in DAYS:
        lake.add(day, 12)
    begun = time.monotonic()
    first = lake.run()
    assert first.wait(600) == 0
    took = time.monotonic() - begun
    lake.require_exact()

    known = set(lake.put)
    for day in DAYS[:2]:
        lake.add(day, 6)
    # Late ones: invisible until the run has switched.
    second = lake.run()
    lake.watch(second, known)
    assert second.returncode == 0
    lake.require_exact()
    assert {bucket for bucket, _ in lake.plan()} == {"my-lake"}

    for share in (0.5, 0.75, 0.95):
        lake.die(share * took)

    last = lake.run()
    lake.watch(last, lake.put - lake.late)
    assert last.returncode == 0
    lake.require_exact()

    assert lake.clean_up() == 0, "an hour has not passed"
    plan = lake.plan()
    lake.forget_grace()
    assert lake.clean_up() == len(lake.put) // 5
    lake.require_exact()
    assert lake.read(plan) == (len(lake.put), lake.put)

    lake.add(DAYS[1], 2)
    assert lake.run().wait(600) == 0
    lake.require_exact()
