"""AWS logs become rows by the fields of their header, or by those that AWS documents.

DuckDB reads the same lines by regular expressions of this file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.rows.row_world import RowWorld

OWNER = "79a59df900b949e5" * 4
S3 = [
    (
        f"{OWNER} logs [06/Feb/2019:00:00:38 +0000] 192.0.2.3 {OWNER} 3E57427F3EXAMPLE"
        ' REST.GET.VERSIONING - "GET /logs?versioning HTTP/1.1" 200 - 113 - 7 - "-"'
        ' "S3Console/0.4" -'
        " s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/XV/VLi31234= SigV4"
        " ECDHE-RSA-AES128-GCM-SHA256 AuthHeader logs.s3.us-west-1.amazonaws.com TLSV1.2 - -"
    ),
    # By the session of a role, with a blank in its name, and with quotes in what was sent.
    (
        f"{OWNER} logs [06/Feb/2019:00:01:57 +0000] 192.0.2.3 arn:aws:sts::1:assumed-role/a/b c"
        ' DD6CC733AEXAMPLE REST.PUT.OBJECT a/%22b%22.txt "PUT /logs/a/%22b%22.txt?x="1" HTTP/1.1"'
        ' 200 - - 4406583 41754 28 "-" "S3Console/0.4 "beta" x" 10S62Zv81kBW7BB6SX4XJ48o6kpcl6LP'
        " us-west-1"
    ),
    # Of an older log, which ends with the version.
    (
        f'{OWNER} logs [06/Feb/2019:00:03:21 +0000] - - A1206F460EXAMPLE S3.EXPIRE.OBJECT k "-" - -'
        ' - 7 - - "-" "-" -'
    ),
]
S3_FIELDS = (
    "bucket_owner bucket time remote_ip requester request_id operation key request http_status"
    " error_code bytes_sent object_size total_time turn_around_time referrer user_agent version_id"
)
S3_PATTERN = (
    r"^(\S+) (\S+) \[([^\]]+)\] (\S+) (.+) ([0-9A-Z]{16}) ([A-Z0-9]+\.[A-Z.]+) (\S+)"
    r' "(.*)" (\d+|-) (\S+) (\S+) (\S+) (\S+) (\S+) "(.*)" "(.*)" (\S+)'
)
ALB = [
    (
        "https 2018-07-02T22:23:00.186641Z app/my-lb/50dc6c495c0c9188 192.168.131.39:2817"
        ' 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/ HTTP/1.1"'
        ' "curl/7.46.0"'
        " ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:eu-west-1:1:t"
        ' "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:x"'
        ' 1 2018-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-"'
        ' TID_1234abcd5678ef90 "m.example.com" "/new" "Success"'
    ),
    (
        "http 2018-07-02T22:23:01.186641Z app/my-lb/50dc6c495c0c9188 192.168.131.39:2817 -"
        ' -1 -1 -1 503 - 34 366 "GET http://www.example.com:80/"x HTTP/1.1" "a "b" c" - -'
        " arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/t/7"
        ' "Root=1-58337364-23a8c76965a2ef7629b185e3"'
    ),
]
FLOW = [
    "version account-id interface-id srcaddr pkts-new bytes start log-status",
    "2 123456789010 eni-1235b8ca123456789 172.31.16.139 20 4249 1418530010 OK",
    "2 123456789010 eni-1235b8ca123456789 - - - 1431280876 NODATA",
    "2 000456789010 eni-1235b8ca123456789 172.31.16.139 1 40 1418530011 OK",
]
CLOUDFRONT = [
    "#Version: 1.0",
    "#Fields: date time x-edge-location sc-bytes c-ip cs(User-Agent) cs-uri-query",
    "2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tMozilla/5.0%20(x)\t-",
    "2019-12-04\t21:02:32\tSEA19-C1\t-\t192.0.2.101\t-\ta=b",
]


def world_of(name: str, lines: list[str], **given: Any) -> RowWorld:
    world = RowWorld(**given)
    world.put(name, "".join(f"{line}\n" for line in lines).encode())
    world.run()
    return world


def by_duckdb(lines: list[str], pattern: str, names: str) -> list[dict[str, Any]]:
    """The groups of a regular expression by names, with NULL for a dash."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log"
        path.write_text("\n".join(lines) + "\n")
        read = "SELECT * FROM read_csv(?, delim = '\x1f', quote = '', escape = '', header = false,"
        relation = duckdb.execute(f"{read} columns = {{'line': 'VARCHAR'}})", [str(path)])
        extract = "SELECT regexp_extract(?, ?, ?)"
        found = [
            duckdb.execute(extract, [line, pattern, names.split()]).fetchall()[0][0]
            for (line,) in relation.fetchall()
        ]
    return [{name: None if value == "-" else value for name, value in one.items()} for one in found]


def as_text(rows: list[dict[str, Any]], names: str) -> list[dict[str, Any]]:
    def text(value: Any) -> str | None:
        return None if value is None else str(value)

    return [{name: text(row[name]) for name in names.split()} for row in rows]


def test_s3_access_logs_have_the_documented_fields() -> None:
    world = world_of("2019-02-06-00-00-38-ABC", [*S3, "no access log"], formats=TEXT)
    rows = world.rows()
    assert as_text(rows, S3_FIELDS) == by_duckdb(S3, S3_PATTERN, S3_FIELDS)
    assert [row["http_status"] for row in rows] == [200, 200, None], "numbers"
    assert rows[0]["host_header"] == "logs.s3.us-west-1.amazonaws.com"
    assert (rows[1]["requester"], rows[1]["user_agent"]) == (
        "arn:aws:sts::1:assumed-role/a/b c",
        'S3Console/0.4 "beta" x',
    )
    assert world.reasons() == [("no access log", "its fields are not those of s3_access")]


TEXT = [{"match": "*", "format": "text"}]


def test_access_logs_of_load_balancers_keep_what_newer_ones_append() -> None:
    world = world_of("a_elasticloadbalancing_x.log", ALB)
    pattern = "^" + r"(\S+) " * 12 + r'"([A-Z]+ \S+ HTTP/1.1)" "(.*?)" (\S+) (\S+) (arn:\S+)'
    names = (
        "type time elb client target request_processing_time target_processing_time"
        " response_processing_time elb_status_code target_status_code received_bytes sent_bytes"
        " request user_agent ssl_cipher ssl_protocol target_group_arn"
    )
    rows = world.rows()
    assert as_text(rows, names) == by_duckdb(ALB, pattern, names)
    assert [row["further_fields"] for row in rows] == ['"m.example.com" "/new" "Success"', None]
    assert [row["conn_trace_id"] for row in rows] == ["TID_1234abcd5678ef90", None]
    assert [row["user_agent"] for row in rows] == ["curl/7.46.0", 'a "b" c']


def test_flow_logs_have_the_fields_of_their_header() -> None:
    world = world_of("x.log", [*FLOW, "2 too few"], formats=[{"match": "*", "format": "vpc_flow"}])
    names = "version account_id interface_id srcaddr pkts_new bytes start log_status"
    pattern = r"^(\S+) (\S+) (\S+) (\S+) (\S+) (\S+) (\S+) (\S+)$"
    rows = world.rows()
    assert as_text(rows, names) == by_duckdb(FLOW[1:], pattern, names)
    assert [row["bytes"] for row in rows] == [4249, None, 40]
    assert rows[2]["account_id"] == "000456789010", "text, since a number would drop its zeros"
    assert world.reasons() == [("2 too few", "fields: 3, names in its header: 8")]


def test_cloudfront_logs_have_the_fields_of_their_comment() -> None:
    world = world_of("E2.2019-12-04-21.d111111abcdef8", CLOUDFRONT)
    names = "date time x_edge_location sc_bytes c_ip cs_user_agent cs_uri_query"
    pattern = "^" + r"\t".join(["([^\t]*)"] * 7) + "$"
    assert as_text(world.rows(), names) == by_duckdb(CLOUDFRONT[2:], pattern, names)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("x_vpcflowlogs_y.log", [*FLOW, FLOW[0]]),
        ("E2.2019-12-04-21.d111111abcdef8", [*CLOUDFRONT, "#Fields: date"]),
        ("app.log", ["2026-01-02T03:04:05Z started"]),
    ],
)
def test_lines_without_known_fields_are_left_alone(name: str, lines: list[str]) -> None:
    world = RowWorld(parquet_schema="version BIGINT")
    world.put(name, "".join(f"{line}\n" for line in lines).encode())
    (commit,) = world.run()
    assert commit.output is None
    assert [one.source.key.rpartition("/")[2] for one in commit.quarantined] == [name]
