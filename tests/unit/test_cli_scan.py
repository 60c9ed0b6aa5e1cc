"""``compactor scan``: what a person sees, what a script gets, and how little it asks for."""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from compactor.model import QuarantineReason
from compactor.scanning.sample import MOST_SAMPLED, RANGE_BYTES, look, shares
from compactor.settings.settings import Settings
from compactor_cli import commands as cli
from compactor_cli.console import Step, heard_by
from tests.support.memory_store import ManualClock, MemoryStore
from tests.zoo.families import KINDS
from tests.zoo.kinds import Verdict
from tests.zoo.trial import sources_of

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
URI = "s3://source/logs/"
JSON = b'{"a": 1}\n'


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    made = MemoryStore(ManualClock(NOW.timestamp()))
    made.add_bucket("source")
    monkeypatch.setattr("compactor_cli.commands.scan.open_store", lambda *_: made)
    monkeypatch.setattr("compactor_cli.commands.scan.time.time", NOW.timestamp)
    return made


def seeded(
    store: MemoryStore, objects: int = 200, body: bytes = JSON, name: str = "{n:04}.json"
) -> None:
    """So many objects of ten days, a day old at least."""
    for n in range(objects):
        day = NOW - timedelta(days=1 + n % 10)
        key = f"logs/{day:%Y/%m/%d}/{name.format(n=n)}"
        store.seed("source", key, body, last_modified=day.timestamp())


def scanned(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert cli.main(["scan", URI, *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(3_000)


def test_images_would_not_be_compacted_so_nothing_pays_and_no_run_is_proposed(
    store, capsys, tmp_path
):
    seeded(store, 200, JPEG, "{n:04}.jpg")
    found = scanned(capsys)
    assert found["inputs"] == []
    file = tmp_path / "compactor.toml"
    assert cli.main(["scan", URI, "--save", "images", "--job-file", str(file)]) == 1
    out, err = capsys.readouterr()
    assert (
        out.splitlines()[0] == "nothing would be compacted, so nothing is spent and nothing saved"
    )
    assert "compactor run" not in out
    assert "was not written" in err
    assert not file.exists()


def test_the_figures_are_of_what_the_sample_shows_to_be_taken(store, capsys):
    seeded(store, 100)
    seeded(store, 300, JPEG, "{n:04}.jpg")
    sources, outputs = scanned(capsys)["money"]["stored"]
    assert (sources["objects"], sources["bytes"]) == (100, 100 * len(JSON))
    assert outputs["objects"] == 10


def test_a_scan_reads_one_listing_and_at_most_64_first_bytes_and_writes_nothing(store, capsys):
    large = gzip.compress(JSON * 100) + b"\0" * 2 * RANGE_BYTES
    seeded(store, 300, large, "{n:04}.json.gz")
    ranges = []
    read = store.read_range

    def counted(source, start, length):
        ranges.append((start, length))
        return read(source, start, length)

    store.read_range = counted
    found = scanned(capsys)
    assert {name: many for name, many in store.snapshot().items() if name.isupper()} == {
        # Of the source, and of the bucket's root, whose table it may be.
        "LIST": 2,
        "GET": MOST_SAMPLED,
    }
    assert ranges == [(0, RANGE_BYTES)] * MOST_SAMPLED
    assert (found["objects"], found["bytes"]) == (300, 300 * len(large))


@pytest.mark.parametrize("kinds", [1, 7, 63, 64, 65, 500])
def test_no_more_than_64_are_looked_at_whatever_they_are_called(kinds):
    places = shares({f".k{n}": 1 + 1_000 * (n % 3) for n in range(kinds)}, MOST_SAMPLED)
    assert sum(places.values()) <= MOST_SAMPLED
    assert all(places.values())
    assert len(places) == min(kinds, MOST_SAMPLED)


def test_a_rare_kind_of_name_is_looked_at_too(store, capsys):
    seeded(store, 400)
    seeded(store, 1, gzip.compress(b"0 1\n"), "odd.log.gz")
    sample = scanned(capsys)["sample"]
    assert len(sample) <= MOST_SAMPLED
    assert [one["compression"] for one in sample if one["key"].endswith("odd.log.gz")] == ["gzip"]


def test_formats_and_compressions_are_those_that_a_run_finds(store, capsys):
    seeded(store, 20, gzip.compress(JSON), "{n}.json.gz")
    seeded(store, 20, b"PAR1 and rows", "{n}.parquet")
    seeded(store, 20, bytes(range(256)), "{n}.bin")
    kinds = {
        (one["compression"], one["format"], one["refused"]) for one in scanned(capsys)["sample"]
    }
    assert kinds == {
        ("gzip", "json_lines", ""),
        ("none", "parquet", ""),
        ("none", None, "binary"),
    }
    assert cli.main(["scan", URI]) == 0
    out = capsys.readouterr().out
    assert "json_lines, gzip" in out
    assert "left alone: binary" in out


def test_the_option_that_decides_what_is_left_alone_is_named(store, capsys):
    seeded(store, 20, b"name,city\nalice,Rome\n", "{n}.csv")
    seeded(store, 10, b"DB_HOST=db\nDB_PORT=17\n", "{n}.txt")
    seeded(store, 5, bytes(range(256)), "{n}.bin")
    assert cli.main(["scan", URI]) == 0
    out = capsys.readouterr().out
    assert "20 objects left alone: add --csv-header present" in out
    assert "10 objects left alone: add --format text" in out
    assert "5 objects left alone: add" not in out


def test_where_all_is_parquet_the_commands_say_so(store, capsys):
    seeded(store, 20, b"PAR1 and rows", "{n}.parquet")
    assert "--format parquet" in scanned(capsys)["inputs"][0]["run"]


@pytest.mark.parametrize("encoding", ["plain", "gzip"])
def test_whatever_of_the_zoo_is_joined_has_a_format(store, encoding):
    given = {"s3_source_uri": URI, "s3_destination_uri": "s3://lake/compacted/"}
    for name, kind in KINDS.items():
        if kind.verdict is not Verdict.JOINED:
            continue
        sources = [
            store.seed("source", f"logs/{one.name}", one.stored)
            for one in sources_of(kind, encoding)
            if not one.empty
        ]
        found = look(sources, store, Settings.from_input({**given, **kind.given}))
        refused = [one for one in found if one.refused]
        assert {one.refused for one in refused} <= {"ambiguous_header"}, (name, refused)
        assert all(one.format is not None for one in found if not one.refused), name
        assert {one.compression for one in found} == {"gzip" if encoding == "gzip" else "none"}


def test_an_object_that_changed_or_may_not_be_read_is_reported_and_stops_nothing(store, capsys):
    seeded(store, 3)
    listed = [one for page in store.list_objects("source", "logs/") for one in page]
    read = store.read_range

    def overwritten(source, start, length):
        if source.key == listed[0].key:
            store.seed("source", source.key, b"other")
        return read(source, start, length)

    store.read_range = overwritten
    store.unreadable["source", listed[1].key] = QuarantineReason.ACCESS_DENIED
    refused = [one["refused"] for one in scanned(capsys)["sample"]]
    assert sorted(refused) == ["", "access_denied", "changed"]


def test_what_would_be_skipped_is_reported_by_the_reasons_of_a_run(store, capsys):
    seeded(store, 100)
    day = "logs/2026/11/19/"
    store.seed("source", day, b"")
    store.seed("source", f"{day}empty.json", b"", last_modified=NOW.timestamp() - 9_000)
    store.seed("source", f"{day}young.json", JSON, last_modified=NOW.timestamp() - 60)
    store.seed("source", f"{day}cold.json", JSON, last_modified=1.0, storage_class="GLACIER")
    store.seed("source", f"{day}compacted-{'0' * 32}.json", JSON, last_modified=1.0)
    store.seed("source", "logs/AWSLogs/1/CloudTrail-Digest/x.json.gz", JSON, last_modified=1.0)
    store.seed("source", "logs/stray.json", JSON, last_modified=1.0)
    found = scanned(capsys)
    assert {reason: one["objects"] for reason, one in found["skipped"].items()} == {
        "directory_marker": 1,
        "empty": 1,
        "too_young": 1,
        "archived_storage_class": 1,
        "own_state_or_output": 1,
        "cloudtrail_digest": 1,
        "above_the_partitions": 1,
    }
    assert found["storage_classes"]["GLACIER"] == {"objects": 1, "bytes": len(JSON)}
    assert not any(one["key"].endswith("cold.json") for one in found["sample"])


def test_sizes_have_the_share_below_128_kib(store, capsys):
    seeded(store, 99)
    seeded(store, 1, b"x" * (128 << 10), "large.log")
    found = scanned(capsys)
    assert found["below_128_kib"] == {"objects": 99, "bytes": 99 * len(JSON)}
    assert sum(one["objects"] for one in found["sizes"]) == 100
    assert cli.main(["scan", URI]) == 0
    assert "below 128 KiB: 99.0% of the objects" in capsys.readouterr().out


def test_beyond_max_objects_it_extrapolates_and_says_from_what(store, capsys):
    store.page_size = 100
    for n in range(5_000):
        day = NOW - timedelta(days=1 + n % 50)
        store.seed(
            "source", f"logs/{day:%Y/%m/%d}/{n:05}.json", JSON, last_modified=day.timestamp()
        )
    found = scanned(capsys, "--max-objects", "1000")
    rest = found["extrapolated"]
    assert found["listed"] == 1_000 + rest["looked_at"]
    assert abs(found["objects"] - 5_000) <= 1_000
    assert found["bytes"] == found["objects"] * len(JSON)
    # 10 pages, 40 probes, 33 looks, and some to the end.
    assert store.snapshot()["LIST"] <= 10 + 40 + 33 + 24
    # Dates behind the place where it stopped are known by the pages looked at.
    (layout,) = found["layout"]["candidates"]
    assert layout["last"] == f"{NOW - timedelta(days=1):%Y-%m-%d}"
    assert cli.main(["scan", URI, "--max-objects", "1000"]) == 0
    out = capsys.readouterr().out
    assert "extrapolated from the first 1,000 objects in key order" in out
    assert rest["after"] in out


def test_no_object_is_counted_twice_where_the_pages_after_the_limit_meet(store, capsys):
    store.page_size = 100
    seeded(store, 1_400)
    found = scanned(capsys, "--max-objects", "1000")
    assert 1_000 < found["listed"] <= 1_400
    assert sum(one["objects"] for one in found["sizes"]) == found["listed"]
    assert found["layout"]["keys"] == found["listed"]


@pytest.mark.parametrize("most", [999, 1_000, 1_001, 2_000])
def test_a_limit_at_the_end_of_what_is_there_extrapolates_nothing(store, capsys, most):
    seeded(store, 1_000)
    found = scanned(capsys, "--max-objects", str(most))
    assert (found["extrapolated"] is None) == (most >= 1_000)
    if most >= 1_000:
        assert (found["listed"], found["objects"]) == (1_000, 1_000)


def test_a_prefix_with_nothing_below_it_ends_with_what_the_bucket_has(store, capsys):
    store.seed("source", "raw/a.json", JSON)
    store.seed("source", "other/a.json", JSON)
    assert cli.main(["scan", URI]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 2)
    assert (
        "there are no objects below s3://source/logs/\n"
        "  check the prefix; the bucket source has other/, raw/" in err
    )


def test_an_empty_bucket_is_reported_as_such(capsys):
    assert cli.main(["scan", "s3://source/"]) == 2
    assert "the bucket source is empty" in capsys.readouterr().err


def test_where_no_object_is_one_of_a_source_no_command_is_proposed(store, capsys):
    store.seed("source", "logs/a/", b"")
    found = scanned(capsys)
    assert (found["layout"]["clear"], found["inputs"]) == (False, [])
    assert "none of these objects" in found["layout"]["why"]
    assert cli.main(["scan", URI]) == 0


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["s3://source/*/"], "s3_source_uri"),
        (["source"], "s3_source_uri"),
        ([URI, "lake"], "s3_destination_uri"),
        ([URI, "--max-objects", "0"], "--max-objects"),
        ([URI, "--max-objects", "many"], "--max-objects"),
        ([URI, "--scans-per-month", "often"], "--scans-per-month"),
        ([URI, "--scans-per-month", "nan"], "--scans-per-month"),
        ([URI, "--prices", "no-such-file.json"], "prices"),
    ],
)
def test_a_wrong_word_is_reported_in_one_line(store, capsys, words, field):
    assert cli.main(["scan", *words]) == 2
    err = capsys.readouterr().err
    assert (err.count("\n"), field in err) == (1, True)
    assert store.snapshot().get("LIST", 0) == 0


def test_the_destination_that_is_given_is_that_of_the_commands(store, capsys):
    seeded(store)
    (one,) = scanned(capsys, "s3://lake/compacted/")["inputs"]
    assert one["fields"]["s3_destination_uri"] == "s3://lake/compacted/"
    (one,) = scanned(capsys, "s3://source/logs/out/")["inputs"]
    assert (one["plan"], one["run"]) == (None, None)
    assert "neither contains the source" in one["fault"]


def test_a_whole_bucket_has_its_source_narrowed_or_its_destination_elsewhere(store, capsys):
    seeded(store)
    assert cli.main(["scan", "s3://source/", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["inputs"]
    places = (one["fields"]["s3_source_uri"], one["fields"]["s3_destination_uri"])
    assert places == ("s3://source/logs/", "s3://source/logs-compacted/")
    store.seed("source", "2026/11/01/a.json", JSON, last_modified=1.0)
    seeded(store, 1)
    for n in range(2_000):
        store.seed("source", f"2026/11/01/{n}.json", JSON, last_modified=1.0)
    assert cli.main(["scan", "s3://source/", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["inputs"]
    assert one["fields"]["s3_destination_uri"] == "s3://source-compacted/data/"
    assert "make s3://source-compacted/ first" in one["notes"][0]


def test_a_window_ends_where_dates_end_and_stays_open_where_they_go_on(store, capsys):
    seeded(store)
    (one,) = scanned(capsys)["inputs"]
    assert (one["fields"]["start"], one["fields"]["end"]) == ("today-10", "today")
    for n in range(10):
        store.remove("source", f"logs/2026/11/19/{10 * n:04}.json")
    for day in ("19", "18"):
        for page in store.list_objects("source", f"logs/2026/11/{day}/"):
            for left in page:
                store.remove("source", left.key)
    (one,) = scanned(capsys)["inputs"]
    assert (one["fields"]["start"], one["fields"]["end"]) == ("2026-11-10", "2026-11-17")


def test_fresh_objects_of_today_are_in_a_window_of_their_own(store, capsys):
    for n in range(20):
        store.seed("source", f"logs/2026/11/20/{n}.json", JSON)
    (one,) = scanned(capsys)["inputs"]
    assert (one["fields"]["start"], one["fields"]["end"]) == ("today-7", "today")


def test_more_hours_than_a_window_may_have_are_cut_and_reported(store, capsys):
    for year in range(1995, 2026):
        store.seed("source", f"logs/{year}/06/01/00/a.json", JSON, last_modified=1.0)
    (one,) = scanned(capsys)["inputs"]
    assert one["fault"] == ""
    assert one["fields"]["start"] == "2014-06-19"
    assert "the keys begin on 1995-06-01" in one["notes"][0]


def test_the_real_cloudtrail_objects_are_recognised(store, capsys, real_cloudtrail: Path):
    many = 0
    for path in sorted(real_cloudtrail.rglob("*.json.gz")):
        key = f"logs/{path.relative_to(real_cloudtrail).as_posix()}"
        arrived = datetime(2023, 7, 10, 12, 40, tzinfo=UTC).timestamp()
        store.seed("source", key, path.read_bytes(), last_modified=arrived)
        many += 1
    found = scanned(capsys)
    assert {(one["format"], one["compression"], one["refused"]) for one in found["sample"]} == {
        ("cloudtrail", "gzip", "")
    }
    (layout,) = found["layout"]["candidates"]
    assert layout["levels"] == ["AWSLogs", "*", "CloudTrail", "*"]
    assert (layout["date_format"], layout["objects"]) == ("%Y/%m/%d", many)
    fields = found["inputs"][0]["fields"]
    assert (fields["start"], fields["end"]) == ("2023-07-10", "2023-07-10")


def test_the_verdict_is_the_first_line(store, capsys):
    seeded(store, 400)
    money = scanned(capsys, "--scans-per-month", "60")["money"]
    assert (money["scans_per_month"], money["prices_of"]) == (60.0, "us-east-1")
    assert money["payback_days"] > 0
    assert cli.main(["scan", URI]) == 0
    first, title, *_ = capsys.readouterr().out.splitlines()
    assert re.match(r"PAYS after \d+ days at 30 scans a month: costs \$0.00", first)
    assert title == "US dollars at the prices of us-east-1"
    assert cli.main(["scan", URI, "--scans-per-month", "0"]) == 0
    assert capsys.readouterr().out.startswith("DOES NOT PAY at 0 scans a month: costs $0.00")


def test_another_class_is_shown_beside_the_present_one(store, capsys):
    seeded(store, 400)
    found = scanned(capsys, "--target-class", "GLACIER_IR")
    assert found["money"]["headline"] == scanned(capsys)["money"]["headline"]
    classes = [row["storage_class"] for row in found["money"]["stored"]]
    assert classes == ["STANDARD", "STANDARD", "GLACIER_IR", "GLACIER_IR"]
    assert "--target-class" not in found["inputs"][0]["plan"]


def test_progress_has_a_rate(store, monkeypatch: pytest.MonkeyPatch, capsys):
    seeded(store, 1_500)
    steps: list[Step] = []
    listener: Callable[[Step], None] = steps.append
    with heard_by(listener):
        assert cli.main(["scan", URI, "--json"]) == 0
    texts = [one.text for one in steps if one.what == "listing" and one.text]
    assert texts[-1].startswith("1,500 objects, ")
    assert texts[-1].endswith("/s")


def test_each_layout_is_saved_as_a_job_and_the_commands_name_it(
    store, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for n in range(40):
        day = NOW - timedelta(days=1 + n % 4)
        at = day.timestamp()
        store.seed("source", f"logs/app/{day:%Y/%m/%d}/{n}.json", JSON, last_modified=at)
        store.seed("source", f"logs/web/day={day:%Y%m%d}/{n}.json", JSON, last_modified=at)
    found = scanned(capsys, "--save", "logs")
    jobs = tomllib.loads((tmp_path / "compactor.toml").read_text())
    assert list(jobs) == ["logs-1", "logs-2"]
    for name, one in zip(jobs, found["inputs"], strict=True):
        assert jobs[name] == one["fields"]
        assert Settings.from_input(jobs[name]).end == "today"
        assert one["plan"] == f"compactor plan {name}"
        assert one["verify"] == f"compactor verify {name} --deep"
    assert cli.main(["scan", URI, "--save", "logs"]) == 2
    assert "delete [logs-1] from compactor.toml first" in capsys.readouterr().err


def test_where_no_input_fits_nothing_is_saved_and_that_is_an_error(
    store, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    seeded(store)
    assert cli.main(["scan", URI, "s3://source/logs/out/", "--save", "logs"]) == 1
    assert "compactor.toml was not written" in capsys.readouterr().err
    assert not (tmp_path / "compactor.toml").exists()


@pytest.mark.parametrize(
    ("bodies", "proposed", "note"),
    [
        ([b"name,city\nana,Rome\n"] * 9, "--csv-header present", "if they are rows, give absent"),
        ([b"ana,%d\nbob,Rome\n" % n for n in range(9)], "--csv-header absent", "give present"),
        ([b"HOST=a\nPORT=%d\n" % n for n in range(9)], "--format text", "every line"),
        ([b"2026-11-26 12:00 INFO caf\xe9 %d\n" % n for n in range(9)], "single_byte", "UTF-8"),
    ],
)
def test_what_no_object_shows_for_certain_is_proposed_with_what_it_decides(
    store, capsys, bodies, proposed, note
):
    for n, body in enumerate(bodies):
        store.seed("source", f"logs/{n}{'.csv' if b',' in body else '.txt'}", body, last_modified=1)
    assert cli.main(["scan", URI]) == 0
    box = capsys.readouterr().out.partition("\nNext\n")[2]
    assert proposed in box
    assert note in box


def test_a_format_is_not_proposed_for_sources_that_have_another(store, capsys):
    seeded(store, 20)
    seeded(store, 20, b"HOST=a\nPORT=1\n", "{n}.txt")
    (one,) = scanned(capsys)["inputs"]
    assert "format" not in one["fields"]
    assert cli.main(["scan", URI]) == 0
    assert "20 objects left alone: add --format text" in capsys.readouterr().out


def test_a_few_young_objects_among_many_wait_for_a_later_run(store, capsys):
    seeded(store, 200)
    for n in range(20):
        store.seed("source", f"logs/2026/11/20/new{n}.json", JSON)
    (one,) = scanned(capsys)["inputs"]
    assert "settle" not in one["run"]
    assert one["notes"] == ["20 objects arrived within the hour: their partitions may wait"]
