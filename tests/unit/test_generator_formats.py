from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections import Counter
from ipaddress import ip_address
from itertools import pairwise

import pytest

from compactor.formats import detect
from compactor.model import Format
from compactor_cli.generator import (
    CompressionChoice,
    GeneratedObject,
    GeneratorSpec,
    LogFormat,
    generate,
)
from compactor_cli.generator.network import HEADER
from compactor_cli.generator.orders import COLUMNS, NEW_COLUMN

OBJECTS = 300

# A real key, to keep the pattern honest.
REAL_CLOUDTRAIL_KEY = (
    "AWSLogs/218007301253/CloudTrail/us-east-1/2023/07/10/"
    "218007301253_CloudTrail_us-east-1_20230710T1145Z_7xgocspSowgK0Gto.json.gz"
)
KEY_PATTERNS = {
    LogFormat.JSON: r"\d{4}/\d\d/\d\d/events-\d{8}T\d{6}Z-[0-9a-f]{8}\.json",
    LogFormat.CSV: r"\d{4}/\d\d/\d\d/orders_\d{8}_\d{6}_[0-9a-f]{8}\.csv",
    LogFormat.CLOUDTRAIL: r"AWSLogs/(\d{12})/CloudTrail/([a-z0-9-]+)/\d{4}/\d\d/\d\d/"
    r"\1_CloudTrail_\2_\d{8}T\d\d[0-5][05]Z_[A-Za-z0-9]{16}\.json\.gz",
    LogFormat.ALB: r"AWSLogs/(\d{12})/elasticloadbalancing/([a-z0-9-]+)/\d{4}/\d\d/\d\d/"
    r"\1_elasticloadbalancing_\2_app\.shop\.[0-9a-f]{16}_\d{8}T\d\d[0-5][05]Z_"
    r"\d+\.\d+\.\d+\.\d+_[a-z0-9]{8}\.log\.gz",
    LogFormat.VPC: r"AWSLogs/(\d{12})/vpcflowlogs/([a-z0-9-]+)/\d{4}/\d\d/\d\d/"
    r"\1_vpcflowlogs_\2_fl-[0-9a-f]{17}_\d{8}T\d\d[0-5][05]Z_[0-9a-f]{8}\.log\.gz",
    LogFormat.TEXT: r"\d{12}/[a-z0-9-]+/shop-assets/\d{4}/\d\d/\d\d/"
    r"\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-[0-9A-F]{16}",
    LogFormat.UNDELIMITED: r"\d{4}/\d\d/\d\d/clickstream-1-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-"
    r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}",
}


def made(log_format: LogFormat, **changes: object) -> list[tuple[GeneratedObject, str]]:
    """Objects of one format with their plain text."""
    spec = GeneratorSpec(
        **{  # type: ignore[arg-type]  # one dict of all types
            "objects": OBJECTS,
            "formats": (log_format,),
            "seed": 5,
            "empty_rate": 0.05,
            "missing_newline_rate": 0.2,
            **changes,
        }
    )
    return [(one, plain(one).decode()) for one in generate(spec)]


def plain(one: GeneratedObject) -> bytes:
    zipped = one.content.startswith(b"\x1f\x8b")
    return gzip.decompress(one.content) if zipped else one.content


@pytest.mark.parametrize("log_format", LogFormat)
def test_keys_are_named_as_the_real_system_names_them(log_format: LogFormat) -> None:
    for one, _ in made(log_format, accounts=3, regions=2):
        assert re.fullmatch(KEY_PATTERNS[log_format], one.key)


def test_the_pattern_of_cloudtrail_keys_fits_a_real_key() -> None:
    assert re.fullmatch(KEY_PATTERNS[LogFormat.CLOUDTRAIL], REAL_CLOUDTRAIL_KEY)


def test_every_json_line_parses_and_has_an_identity_of_its_own() -> None:
    identities = Counter[str]()
    for one, text in made(LogFormat.JSON):
        lines = text.splitlines() if text else []
        assert len(lines) == one.records
        for line in lines:
            event = json.loads(line)
            assert event["timestamp"].startswith(one.key[:10].replace("/", "-"))
            identities[event["event_id"]] += 1
    assert len(identities) > OBJECTS
    assert set(identities.values()) == {1}


def test_undelimited_json_holds_one_document_right_after_the_other() -> None:
    decoder = json.JSONDecoder()
    for one, text in made(LogFormat.UNDELIMITED):
        assert "\n" not in text
        position = count = 0
        while position < len(text):
            _, position = decoder.raw_decode(text, position)
            count += 1
        assert count == one.records


def test_csv_rows_have_as_many_fields_as_their_header() -> None:
    headers = Counter[tuple[str, ...]]()
    for one, text in made(LogFormat.CSV):
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        if not rows:
            assert one.records == 0
            continue
        assert len(rows) - 1 == one.records == len(text.splitlines()) - 1
        assert {len(row) for row in rows} == {len(rows[0])}
        headers[tuple(rows[0])] += 1
    assert set(headers) == {COLUMNS, (*COLUMNS, NEW_COLUMN)}


def test_the_csv_header_changes_once_in_the_window() -> None:
    headers = [text.split("\n")[0] for one, text in made(LogFormat.CSV) if one.records]
    changes = sum(before != after for before, after in pairwise(headers))
    assert changes == 1


def test_csv_fields_hold_commas_and_quotes() -> None:
    fields = [
        field
        for _, text in made(LogFormat.CSV)
        for row in csv.reader(io.StringIO(text, newline=""))
        for field in row
    ]
    assert any("," in field for field in fields)
    assert any('"' in field for field in fields)


def test_cloudtrail_documents_hold_complete_records() -> None:
    identities = Counter[str]()
    for one, text in made(LogFormat.CLOUDTRAIL):
        document = json.loads(text)
        assert list(document) == ["Records"]
        assert len(document["Records"]) == one.records
        account, region = one.key.split("/")[1], one.key.split("/")[3]
        for record in document["Records"]:
            assert record["recipientAccountId"] == record["userIdentity"]["accountId"] == account
            assert record["awsRegion"] == region
            assert record["eventTime"][:10] == "-".join(one.key.split("/")[4:7])
            assert record["eventSource"].endswith(".amazonaws.com")
            identities[record["eventID"]] += 1
        assert "@" not in re.sub(r"[a-z]@example", "", text)
    assert set(identities.values()) == {1}


def test_load_balancer_entries_have_all_thirty_fields() -> None:
    for one, text in made(LogFormat.ALB):
        lines = text.splitlines()
        assert len(lines) == one.records
        for line in lines:
            fields = re.findall(r'"[^"]*"|\S+', line)
            assert len(fields) == 30
            assert fields[0] in ("http", "h2")
            ip_address(fields[3].partition(":")[0])
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", fields[1])
            assert fields[12].startswith(('"GET ', '"POST '))
            assert fields[29].startswith("TID_")


def test_flow_logs_have_a_header_and_fourteen_fields() -> None:
    statuses = Counter[str]()
    for one, text in made(LogFormat.VPC):
        lines = text.splitlines()
        if lines:
            assert lines[0] == HEADER
        assert len(lines[1:]) == one.records
        for line in lines[1:]:
            fields = line.split(" ")
            assert len(fields) == 14
            assert int(fields[11]) - int(fields[10]) == 60
            statuses[fields[13]] += 1
            if fields[13] == "OK":
                ip_address(fields[3])
                ip_address(fields[4])
                assert int(fields[9]) >= int(fields[8]) > 0
    assert set(statuses) == {"OK", "NODATA", "SKIPDATA"}
    assert statuses["OK"] / statuses.total() > 0.9


def test_bucket_access_entries_have_all_twenty_seven_fields() -> None:
    for one, text in made(LogFormat.TEXT):
        lines = text.splitlines()
        assert len(lines) == one.records
        for line in lines:
            fields = re.findall(r'\[[^\]]*\]|"[^"]*"|\S+', line)
            assert len(fields) == 27
            assert re.fullmatch(r"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\]", fields[2])
            assert fields[6].startswith("REST.")


@pytest.mark.parametrize("log_format", LogFormat)
def test_empty_objects_are_valid_too(log_format: LogFormat) -> None:
    texts = {text for _, text in made(log_format, empty_rate=1.0)}
    header = HEADER if log_format is LogFormat.VPC else ",".join(COLUMNS)
    expected = {
        LogFormat.CLOUDTRAIL: {'{"Records":[]}'},
        LogFormat.VPC: {"", header + "\n"},
        LogFormat.CSV: {"", header + "\n", f"{header},{NEW_COLUMN}\n"},
    }
    assert texts == expected.get(log_format, {""})


@pytest.mark.parametrize(
    ("log_format", "plain_end", "gzip_end"),
    [
        (LogFormat.JSON, ".json", ".json.gz"),
        (LogFormat.CSV, ".csv", ".csv.gz"),
        (LogFormat.CLOUDTRAIL, ".json", ".json.gz"),
        (LogFormat.VPC, ".log", ".log.gz"),
    ],
)
def test_the_suffix_decides_the_compression(
    log_format: LogFormat, plain_end: str, gzip_end: str
) -> None:
    found = Counter[bool]()
    for one, _ in made(log_format, compression=CompressionChoice.MIXED, empty_rate=0.0):
        zipped = one.content.startswith(b"\x1f\x8b")
        assert one.key.endswith(gzip_end if zipped else plain_end)
        found[zipped] += 1
    assert 0.4 < found[True] / OBJECTS < 0.6


def test_some_gzip_objects_have_two_members() -> None:
    contents = [
        one.content
        for one, _ in made(LogFormat.JSON, compression=CompressionChoice.GZIP, empty_rate=0.0)
    ]
    members = Counter(content.count(b"\x1f\x8b\x08\x00\x00\x00\x00\x00") for content in contents)
    assert set(members) == {1, 2}
    assert 0.05 < members[2] / OBJECTS < 0.15


def test_strings_hold_what_a_careless_splitter_trips_over() -> None:
    text = "".join(text for _, text in made(LogFormat.JSON))
    assert "}{" in text
    assert "\\n" in text
    assert '\\"' in text
    assert not text.isascii()


SEEN_AS = {
    LogFormat.JSON: Format.JSON_LINES,
    LogFormat.CLOUDTRAIL: Format.CLOUDTRAIL,
    LogFormat.ALB: Format.TEXT,
    LogFormat.VPC: Format.VPC_FLOW,
    LogFormat.TEXT: Format.TEXT,
    LogFormat.UNDELIMITED: Format.UNDELIMITED_JSON,
}


@pytest.mark.parametrize("log_format", SEEN_AS)
def test_what_is_generated_is_certain(log_format: LogFormat) -> None:
    seen = Counter[Format | None]()
    for one, text in made(log_format, empty_rate=0.0):
        found = detect(text.encode(), one.key, complete=True, forced=None)
        seen[found.format if found else None] += 1
    # One object on one line is a line.
    alone = seen.pop(Format.JSON_LINES, 0) if log_format is LogFormat.UNDELIMITED else 0
    assert seen == {SEEN_AS[log_format]: OBJECTS - alone}
