from __future__ import annotations

import gzip
import hashlib
import math
import statistics
from collections import Counter
from datetime import UTC, date, datetime
from itertools import islice, pairwise
from random import Random

import pytest

from compactor_cli.generator import (
    CompressionChoice,
    GeneratedObject,
    GeneratorSpec,
    LogFormat,
    generate,
)
from compactor_cli.generator.arrivals import LATE_SECONDS, LATEST_SECONDS, Arrivals, delay_seconds
from compactor_cli.generator.keys import unique_hex

EVERYTHING = GeneratorSpec(
    objects=400,
    formats=tuple(LogFormat),
    seed=7,
    compression=CompressionChoice.MIXED,
    empty_rate=0.05,
    accounts=2,
    regions=2,
)
# Keys and plain bytes of EVERYTHING. A change of the generator changes it; a change of the
# machine, the Python release or the hash seed must not.
EVERYTHING_SHA256 = "8058159e8e568ce01e33e1a8442e0b47755a827c63f0d73e2d55d93b38d43bc7"

MONDAY = date(2026, 1, 5)


def digest(spec: GeneratorSpec) -> str:
    total = hashlib.sha256()
    for one in generate(spec):
        zipped = one.content.startswith(b"\x1f\x8b")
        total.update(one.key.encode() + b"\0")
        total.update(gzip.decompress(one.content) if zipped else one.content)
        total.update(b"\0%d\0%d\n" % (one.last_modified, one.records))
    return total.hexdigest()


def event_time(one: GeneratedObject) -> float:
    """Second at which a json object's events end, from its key."""
    stamp = one.key.rpartition("/")[2].split("-")[1]
    return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


def test_the_same_spec_gives_the_same_objects() -> None:
    assert list(generate(EVERYTHING)) == list(generate(EVERYTHING))


def test_the_same_seed_gives_the_same_bytes_on_every_machine() -> None:
    assert digest(EVERYTHING) == EVERYTHING_SHA256


def test_another_seed_gives_other_objects() -> None:
    one = list(generate(GeneratorSpec(objects=50, seed=1)))
    two = list(generate(GeneratorSpec(objects=50, seed=2)))
    assert {o.content for o in one if o.content}.isdisjoint(o.content for o in two if o.content)


def test_gzip_headers_carry_no_time_of_writing() -> None:
    spec = GeneratorSpec(objects=20, compression=CompressionChoice.GZIP, empty_rate=0.0)
    assert {one.content[4:8] for one in generate(spec)} == {bytes(4)}


def test_objects_are_made_one_at_a_time_however_many_are_asked_for() -> None:
    first = list(islice(generate(GeneratorSpec(objects=2**32)), 3))
    assert len({one.key for one in first}) == 3


def test_no_two_objects_share_a_key() -> None:
    spec = GeneratorSpec(objects=7_000, rows=1, days=1, formats=tuple(LogFormat))
    assert len({one.key for one in generate(spec)}) == 7_000


def test_unique_hex_differs_for_neighbours_and_for_the_largest_index() -> None:
    indices = [*range(10_000), *range(2**32 - 10_000, 2**32)]
    assert len({unique_hex(index) for index in indices}) == len(indices)


def test_formats_take_turns() -> None:
    suffixes = Counter(one.key.rpartition(".")[2] for one in generate(EVERYTHING))
    one_format = EVERYTHING.objects / len(LogFormat)
    assert suffixes["csv"] + suffixes["gz"] > one_format
    data_sets = Counter(one.key.partition("/")[0] for one in generate(EVERYTHING))
    for name in ("events", "orders", "clickstream"):
        assert abs(data_sets[name] - one_format) <= 1


def test_accounts_and_regions_are_all_used() -> None:
    spec = GeneratorSpec(objects=200, formats=(LogFormat.CLOUDTRAIL,), accounts=3, regions=4)
    pairs = {(key.split("/")[1], key.split("/")[3]) for key in (o.key for o in generate(spec))}
    assert len(pairs) == 12


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_the_empty_rate_is_honoured(rate: float) -> None:
    spec = GeneratorSpec(objects=2_000, rows=3, empty_rate=rate)
    empty = [one for one in generate(spec) if one.records == 0]
    assert all(one.content == b"" for one in empty)
    assert abs(len(empty) / 2_000 - rate) < 0.04


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_the_late_rate_is_honoured(rate: float) -> None:
    spec = GeneratorSpec(objects=2_000, rows=1, late_rate=rate)
    delays = [one.last_modified - event_time(one) for one in generate(spec)]
    assert min(delays) > 0
    assert max(delays) <= LATEST_SECONDS
    assert abs(sum(delay >= LATE_SECONDS for delay in delays) / 2_000 - rate) < 0.04


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_the_missing_newline_rate_is_honoured(rate: float) -> None:
    spec = GeneratorSpec(objects=2_000, rows=3, empty_rate=0.0, missing_newline_rate=rate)
    missing = sum(not one.content.endswith(b"\n") for one in generate(spec))
    assert abs(missing / 2_000 - rate) < 0.04


def test_rows_are_log_normal_with_the_mean_asked_for() -> None:
    spec = GeneratorSpec(
        objects=4_000, rows=200, formats=(LogFormat.VPC,), compression=CompressionChoice.NONE
    )
    rows = [one.records for one in generate(spec) if one.records]
    logs = [math.log(one) for one in rows]
    assert statistics.mean(rows) == pytest.approx(200, rel=0.06)
    assert statistics.median(rows) == pytest.approx(200 * math.exp(-0.5), rel=0.06)
    assert statistics.stdev(logs) == pytest.approx(1.0, rel=0.05)


def test_without_sigma_all_objects_have_the_rows_asked_for() -> None:
    spec = GeneratorSpec(objects=200, rows=13, size_sigma=0.0, empty_rate=0.0)
    assert {one.records for one in generate(spec)} == {13}


@pytest.mark.parametrize(
    "date_format", ["%Y/%m/%d", "dt=%Y-%m-%d", "year=%Y/month=%m/day=%d/hour=%H"]
)
def test_keys_spread_over_exactly_the_days_asked_for(date_format: str) -> None:
    spec = GeneratorSpec(
        objects=900, rows=1, start=date(2024, 2, 27), days=4, date_format=date_format
    )
    # Of the hourly format only the days are compared.
    parsed = {
        datetime.strptime(one.key.rpartition("/")[0], date_format).replace(tzinfo=UTC).date()
        for one in generate(spec)
    }
    assert parsed == {date(2024, 2, day) for day in (27, 28, 29)} | {date(2024, 3, 1)}


def test_objects_come_in_the_order_of_their_events() -> None:
    times = [event_time(one) for one in generate(GeneratorSpec(objects=1_000, rows=1))]
    assert all(before <= after for before, after in pairwise(times))


def test_nights_and_weekends_are_quiet_and_some_minutes_are_bursts() -> None:
    arrivals = Arrivals(GeneratorSpec(start=MONDAY, days=28))
    times = [arrivals.at(step / 40_000) for step in range(40_000)]
    hours = Counter(time % 86_400 // 3_600 for time in times)
    days = Counter(datetime.fromtimestamp(time, UTC).weekday() for time in times)
    slots = Counter(time // 600 for time in times)
    assert hours[14] > 2 * hours[2]
    assert statistics.mean(days[d] for d in range(5)) > 1.5 * statistics.mean([days[5], days[6]])
    assert max(slots.values()) > 4 * statistics.median(slots.values())


def test_arrivals_stay_within_the_window() -> None:
    arrivals = Arrivals(GeneratorSpec(start=MONDAY, days=1))
    assert arrivals.at(0.0) == arrivals.first
    assert arrivals.at(math.nextafter(1.0, 0.0)) == arrivals.first + 86_399


def test_a_late_object_is_hours_after_its_events() -> None:
    rng = Random(1)
    late = [delay_seconds(rng, late=True) for _ in range(2_000)]
    on_time = [delay_seconds(rng, late=False) for _ in range(2_000)]
    assert 2 * 3_600 < statistics.median(late) < 6 * 3_600
    assert 30 < statistics.median(on_time) < 120
    assert max(on_time) < min(late)
