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
from compactor.scanning.proposals import MOST_SAMPLED, RANGE_BYTES
from compactor.settings.settings import Settings
from compactor_cli import commands as cli
from compactor_cli.console import Step, heard_by
from tests.support.memory_store import ManualClock, MemoryStore

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


def family(found: dict[str, Any], match: str) -> dict[str, Any]:
    """The one family of keys of this pattern, in the only job."""
    (job,) = found["jobs"]
    families: dict[str, dict[str, Any]] = {one["match"]: one for one in job["formats"]}
    return families[match]


JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(3_000)


def test_images_would_not_be_compacted_so_nothing_pays_and_no_run_is_proposed(
    store, capsys, tmp_path
):
    seeded(store, 200, JPEG, "{n:04}.jpg")
    found = scanned(capsys)
    assert (found["money"]["stored"], found["jobs"][0]["run"]) == ([], None)
    file = tmp_path / "compactor.toml"
    assert cli.main(["scan", URI, "--save", "images", "--job-file", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "nothing here can be compacted: images (JPEG)"
    assert "compactor run s3" not in out
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


def test_a_rare_kind_of_name_is_read_too(store, capsys):
    seeded(store, 400)
    seeded(store, 1, gzip.compress(b"0 1\n"), "odd.log.gz")
    assert family(scanned(capsys), "*.log*")["kind"] == "text"


def test_what_names_or_parsing_prove_needs_no_declaration(store, capsys):
    seeded(store, 20, gzip.compress(JSON), "{n}.json.gz")
    seeded(store, 20, b"PAR1 and rows", "{n}.parquet")
    seeded(store, 20, b"anything\n", "app.log.{n}")
    seeded(store, 20, b"2026-11-26 12:00:00 a\n2026-11-26 12:00:01 b\n", "part-{n}")
    found = scanned(capsys)
    assert "formats" not in found["jobs"][0]["fields"]
    kinds = {one["match"]: one["kind"] for one in found["jobs"][0]["formats"]}
    assert kinds == {
        "*.json.gz": "json_lines", "*.parquet": "parquet", "*.log*": "text", "*part-*": "text"
    }  # fmt: skip
    assert cli.main(["scan", URI]) == 0
    out = capsys.readouterr().out
    assert "no declaration needed: 16 of 16 proven by parsing" in out
    assert "no declaration needed: 16 of 16 by name or first line" in out


def test_parquet_beside_its_schema_is_taken_and_under_other_names_proposed(store, capsys):
    seeded(store, 20, b"PAR1 and rows", "{n}.parquet")
    seeded(store, 20, b"PAR1 and rows", "{n}.parq")
    store.seed("source", "logs/2026/11/19/schema.json", b'{\n  "a": 1\n}\n', last_modified=1.0)
    found = scanned(capsys)
    assert found["jobs"][0]["fields"]["formats"] == [{"match": "*.parq", "format": "parquet"}]
    assert family(found, "*.parquet")["share"] == 1.0
    assert family(found, "*.json")["kind"] == "JSON documents over several lines"


HEADED = b"id,name,amount\n{0},Li,1.5\n-{0},Bo,2.5\n"
ROWS = b"{0},Li,1.5\n-{0},Bo,2.5\n"
NAMES = b"name,city\nana,Rome\nbob{0},Paris\n"
TEXTS = b"{0} Li,Rome\n{0} Bo,Paris\n"


def filled(body: bytes, n: int) -> bytes:
    return body.replace(b"{0}", b"%d" % n)


@pytest.mark.parametrize(
    ("body", "name", "declaration", "confidence"),
    [
        (HEADED, "{n}.csv", {"header": True}, "certain"),
        (HEADED.replace(b",", b";"), "{n}.csv", {"header": True, "delimiter": ";"}, "certain"),
        (HEADED.replace(b",", b"\t"), "{n}.tsv", {"header": True}, "certain"),
        (HEADED.replace(b",", b"|"), "{n}.psv", {"header": True, "delimiter": "|"}, "certain"),
        (HEADED.replace(b"Li", b"Zo\xeb"), "{n}.csv",
         {"header": True, "encoding": "single_byte"}, "certain"),
        (HEADED.replace(b"Li", b'"L\\", i"'), "{n}.csv",
         {"header": True, "escape": "backslash"}, "certain"),
        (HEADED.replace(b"Li", b'"Li" 5" disk').replace(b",", b"\t"), "{n}.tsv",
         {"header": True, "quote": "none"}, "certain"),
        (ROWS, "{n}.csv", {"header": False}, "certain"),
        (NAMES, "{n}.csv", {"header": True}, "likely"),
        (TEXTS, "{n}.csv", {"header": False}, "likely"),
    ],
)  # fmt: skip
def test_csv_is_proposed_with_its_header_and_dialect_and_the_evidence(
    store, capsys, body, name, declaration, confidence
):
    for n in range(10, 50):
        key = f"logs/orders/{name.format(n=n)}"
        store.seed("source", key, filled(body, n), last_modified=1.0)
    found = scanned(capsys)
    suffix = name.removeprefix("{n}")
    format = "tsv" if suffix == ".tsv" else "csv"
    one = family(found, f"*{suffix}")
    assert one["confidence"] == confidence
    expected = {"match": f"*{suffix}", "format": format, **declaration}
    assert found["jobs"][0]["fields"]["formats"] == [expected]
    assert (one["share"], "40 of 40 objects" in one["evidence"]) == (1.0, True)


def test_one_object_alone_is_unsure_and_both_choices_are_comments(store, capsys, tmp_path):
    store.seed("source", "logs/one.csv", filled(HEADED, 1), last_modified=1.0)
    file = tmp_path / "jobs.toml"
    assert cli.main(["scan", URI, "--save", "one", "--job-file", str(file)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "nothing is compacted until a format is chosen for *.csv"
    assert "choose --set '*.csv=csv,header=true' or --set '*.csv=csv,header=false'" in out
    text = file.read_text()
    assert tomllib.loads(text)["one"]["formats"] == []
    assert "one object alone" in text
    for line in (line.removeprefix("  # ") for line in text.splitlines()):
        if line.startswith("{"):
            chosen = text.replace(f"  # {line}", f"  {line}")
            (declared,) = tomllib.loads(chosen)["one"]["formats"]
            assert declared["match"] == "*.csv"


def test_one_source_with_another_header_does_not_decide_over_its_neighbours(store, capsys):
    for n in range(8):
        body = filled(HEADED, n + 10)
        store.seed("source", f"logs/{n}.csv", body if n else body.swapcase(), last_modified=1.0)
    store.seed("source", "logs/9.csv", filled(HEADED, 9) * 2, last_modified=1.0)
    one = family(scanned(capsys), "*.csv")
    assert (one["confidence"], one["declarations"][0]["header"]) == ("likely", True)


def test_directories_that_differ_have_declarations_of_their_own(store, capsys):
    for n in range(10, 40):
        for path, body in (("web/orders", HEADED), ("web/clicks", ROWS)):
            store.seed("source", f"logs/{path}/{n}.csv", filled(body, n), last_modified=1.0)
    (job,) = scanned(capsys)["jobs"]
    assert sorted(job["fields"]["formats"], key=lambda one: one["match"]) == [
        {"match": "web/clicks/*.csv", "format": "csv", "header": False},
        {"match": "web/orders/*.csv", "format": "csv", "header": True},
    ]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{\n  "a": 1,\n  "b": 2\n}\n', "JSON documents over several lines"),
        (b"<?xml version='1.0'?>\n<a/>\n", "XML or HTML documents"),
        (b"---\na: 1\n", "YAML or PEM documents"),
        (b"-----BEGIN CERTIFICATE-----\nAA==\n", "YAML or PEM documents"),
        (b"PK\x03\x04" + bytes(99), "zip archives"),
        (b"\x89PNG" + bytes(99), "images (PNG)"),
        (b"Obj\x01" + bytes(99), "Avro files"),
        (bytes(99), "binary data"),
    ],
)
def test_what_no_declaration_helps_is_named_and_none_is_offered(store, capsys, body, kind):
    seeded(store, 20, body, "{n}.dat")
    one = family(scanned(capsys), "*.dat")
    assert (one["kind"], one["share"], one["declarations"]) == (kind, 0.0, [])
    assert cli.main(["scan", URI]) == 0
    assert f"cannot be compacted: 20 of 20 are {kind}" in capsys.readouterr().out


def test_archives_among_logs_are_named_and_not_counted(store, capsys):
    seeded(store, 40, b"2026-11-26 12:00:00 a\n", "{n}.log")
    seeded(store, 20, b"PK\x03\x04" + bytes(99), "zip-{n}.log")
    one = family(scanned(capsys), "*.log*")
    assert (one["kind"], one["declarations"]) == ("text", [])
    assert 0.6 < one["share"] < 0.75
    assert "cannot be compacted: zip archives" in one["evidence"]


def test_lines_without_a_time_are_left_to_a_person(store, capsys):
    seeded(store, 20, b"DB_HOST=db\nDB_PORT=17\n", "{n}.txt")
    found = scanned(capsys)
    assert "formats" not in found["jobs"][0]["fields"]
    assert family(found, "*.txt")["confidence"] == "unsure"
    found = scanned(capsys, "--set", "*.txt=text")
    assert found["jobs"][0]["fields"]["formats"] == [{"match": "*.txt", "format": "text"}]
    assert family(found, "*.txt")["evidence"] == "declared by you: 20 of 20 begin so"
    assert found["money"]["stored"][0]["objects"] == 20


def test_logs_that_are_not_utf_8_are_proposed_as_such(store, capsys):
    seeded(store, 20, b"2026-11-26 12:00:00 caf\xe9\n2026-11-26 12:00:01 caf\xe9\n", "{n}.log")
    (one,) = scanned(capsys)["jobs"][0]["fields"]["formats"]
    assert one == {"match": "*.log*", "format": "text", "encoding": "single_byte"}


def test_a_pattern_that_also_matches_other_keys_is_left_to_a_person(store, capsys):
    body = b"2026-11-26 12:00:00 caf\xe9\n2026-11-26 12:00:01 caf\xe9\n"
    seeded(store, 20, body, "{n}")
    seeded(store, 20, JSON, "{n}.json")
    found = scanned(capsys)
    assert "formats" not in found["jobs"][0]["fields"]
    assert "it also matches keys of *.json" in family(found, "*")["evidence"]


def test_a_given_declaration_comes_first_and_replaces_the_proposed_one(store, capsys):
    for n in range(10, 40):
        for path in ("a", "b"):
            store.seed("source", f"logs/{path}/{n}.csv", filled(HEADED, n), last_modified=1.0)
    found = scanned(capsys, "--set", "b/*.csv=csv,header=false,delimiter=;,quote=none")
    assert found["jobs"][0]["fields"]["formats"] == [
        {"match": "b/*.csv", "format": "csv", "header": False, "delimiter": ";", "quote": "none"},
        {"match": "*.csv", "format": "csv", "header": True},
    ]


@pytest.mark.parametrize("delimiter", ["\t", "\x01", "|", ";"])
def test_a_printed_choice_is_what_set_takes(store, capsys, delimiter):
    body = filled(HEADED, 1).replace(b",", delimiter.encode())
    store.seed("source", "logs/dt=2026-11-01/one.csv", body, last_modified=1.0)
    assert cli.main(["scan", URI]) == 0
    printed = capsys.readouterr().out
    choice = re.findall(r"--set '([^']*)'", printed)[0]
    (declared,) = scanned(capsys, "--set", choice)["jobs"][0]["fields"]["formats"]
    expected = {"match": "*.csv", "format": "csv", "header": True, "delimiter": delimiter}
    assert declared == expected


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("*.csv", "a glob and a format"),
        ("*.csv=csv", "header: true or false"),
        ("*.csv=cvs,header=true", "a glob and a format"),
        ("*.txt=text,header=true", "header only with format csv or tsv"),
    ],
)
def test_a_wrong_declaration_is_reported_before_anything_is_listed(store, capsys, text, accepted):
    assert cli.main(["scan", URI, "--set", text]) == 2
    assert accepted in capsys.readouterr().err
    assert store.snapshot().get("LIST", 0) == 0


def test_the_deployments_job_is_printed_as_toml(store, capsys):
    seeded(store, 20, HEADED, "{n}.csv")
    store.seed("source", "logs/2026/11/19/one.tsv", b"a\tb\n1\t2\n", last_modified=1.0)
    assert cli.main(["scan", URI, "s3://lake/x/", "--print-deployment"]) == 0
    out, err = capsys.readouterr()
    assert tomllib.loads(out)["job"] == {
        "s3_source_uri": URI,
        "s3_destination_uri": "s3://lake/x/",
        "date_format": "%Y/%m/%d",
        "window": "today-10..today",
        "formats": [{"match": "*.csv", "format": "csv", "header": True}],
    }
    assert "*.tsv is left alone" in err


def test_a_deployment_has_one_source(store, capsys):
    for n in range(40):
        day = NOW - timedelta(days=1 + n % 4)
        for key in (f"app/{day:%Y/%m/%d}/{n}.json", f"web/day={day:%Y%m%d}/{n}.json"):
            store.seed("source", f"logs/{key}", JSON, last_modified=1.0)
    assert cli.main(["scan", URI, "--print-deployment"]) == 1
    assert "s3://source/logs/app/, s3://source/logs/web/" in capsys.readouterr().err


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
    one = family(scanned(capsys), "*.json")
    assert (one["kind"], round(one["share"], 2)) == ("access_denied", 0.33)


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


def test_sizes_have_the_share_below_128_kib(store, capsys):
    seeded(store, 99)
    seeded(store, 1, b"x" * (128 << 10), "large.log")
    found = scanned(capsys)
    assert found["below_128_kib"] == {"objects": 99, "bytes": 99 * len(JSON)}
    assert sum(one["objects"] for one in found["sizes"]) == 100
    assert cli.main(["scan", URI]) == 0
    assert "below 128 KiB: 99.0% of the objects" in capsys.readouterr().out


def test_beyond_max_objects_it_says_that_there_is_more_and_the_window_stays_open(store, capsys):
    store.page_size = 100
    for n in range(5_000):
        day = NOW - timedelta(days=100 + n % 50)
        store.seed("source", f"logs/{day:%Y/%m/%d}/{n:05}.json", JSON, last_modified=1.0)
    found = scanned(capsys, "--max-objects", "1000")
    assert found["objects"] == 1_000
    assert found["cut_at"] is not None
    assert found["jobs"][0]["fields"]["window"].endswith("..today")
    assert store.snapshot()["LIST"] <= 20
    assert cli.main(["scan", URI, "--max-objects", "1000"]) == 0
    out = capsys.readouterr().out
    assert f"{URI}: more than 1,000 objects" in out
    assert f"of the first 1,000 objects in key order, up to {found['cut_at']}" in out


@pytest.mark.parametrize("most", [999, 1_000, 1_001, 2_000])
def test_a_limit_at_the_end_of_what_is_there_leaves_nothing_out(store, capsys, most):
    seeded(store, 1_000)
    found = scanned(capsys, "--max-objects", str(most))
    assert (found["cut_at"] is None) == (most >= 1_000)
    assert found["objects"] == min(most, 1_000)


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
    assert found["jobs"] == []
    assert cli.main(["scan", URI]) == 0
    assert "a run would compact none of these objects" in capsys.readouterr().out


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
    (one,) = scanned(capsys, "s3://lake/compacted/")["jobs"]
    assert one["fields"]["s3_destination_uri"] == "s3://lake/compacted/"
    (one,) = scanned(capsys, "s3://source/logs/out/")["jobs"]
    assert (one["plan"], one["run"]) == (None, None)
    assert "neither contains the source" in one["fault"]


def test_a_whole_bucket_has_its_source_narrowed_or_its_destination_elsewhere(store, capsys):
    seeded(store)
    assert cli.main(["scan", "s3://source/", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["jobs"]
    places = (one["fields"]["s3_source_uri"], one["fields"]["s3_destination_uri"])
    assert places == ("s3://source/logs/", "s3://source/logs-compacted/")
    store.seed("source", "2026/11/01/a.json", JSON, last_modified=1.0)
    seeded(store, 1)
    for n in range(2_000):
        store.seed("source", f"2026/11/01/{n}.json", JSON, last_modified=1.0)
    assert cli.main(["scan", "s3://source/", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["jobs"]
    assert "neither contains the source" in one["fault"]


def test_a_window_ends_where_dates_end_and_stays_open_where_they_go_on(store, capsys):
    seeded(store)
    (one,) = scanned(capsys)["jobs"]
    assert one["fields"]["window"] == "today-10..today"
    for n in range(10):
        store.remove("source", f"logs/2026/11/19/{10 * n:04}.json")
    for day in ("19", "18"):
        for page in store.list_objects("source", f"logs/2026/11/{day}/"):
            for left in page:
                store.remove("source", left.key)
    (one,) = scanned(capsys)["jobs"]
    assert one["fields"]["window"] == "2026-11-10..2026-11-17"


def test_fresh_objects_of_today_are_in_a_window_of_their_own(store, capsys):
    for n in range(20):
        store.seed("source", f"logs/2026/11/20/{n}.json", JSON)
    (one,) = scanned(capsys)["jobs"]
    assert one["fields"]["window"] == "today-7..today"


def test_the_real_cloudtrail_objects_are_recognised(store, capsys, real_cloudtrail: Path):
    many = 0
    for path in sorted(real_cloudtrail.rglob("*.json.gz")):
        key = f"logs/{path.relative_to(real_cloudtrail).as_posix()}"
        arrived = datetime(2023, 7, 10, 12, 40, tzinfo=UTC).timestamp()
        store.seed("source", key, path.read_bytes(), last_modified=arrived)
        many += 1
    found = scanned(capsys)
    assert family(found, "*.json.gz")["kind"] == "cloudtrail"
    layout = found["jobs"][0]["layout"]
    assert layout["levels"] == ["AWSLogs", "*", "CloudTrail", "*"]
    assert (layout["date_format"], layout["objects"]) == ("%Y/%m/%d", many)
    fields = found["jobs"][0]["fields"]
    assert fields["window"] == "2023-07-10..2023-07-10"


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
    assert "--target-class" not in found["jobs"][0]["plan"]


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
    for name, one in zip(jobs, found["jobs"], strict=True):
        assert jobs[name] == one["fields"]
        assert str(Settings.from_input(jobs[name]).window).endswith("..today")
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


def test_a_few_young_objects_among_many_wait_for_a_later_run(store, capsys):
    seeded(store, 200)
    for n in range(20):
        store.seed("source", f"logs/2026/11/20/new{n}.json", JSON)
    (one,) = scanned(capsys)["jobs"]
    assert "settle" not in one["run"]
    assert one["note"] == "20 objects arrived within the hour: their partitions wait"
