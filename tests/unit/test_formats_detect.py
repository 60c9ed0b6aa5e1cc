"""A source is taken as a format if it is declared, named or dated, proven, or a headed AWS log."""

from __future__ import annotations

import random

import pytest

from compactor.errors import UnreadableSource
from compactor.formats import Declaration, Detected, content_type, detect, extension_for
from compactor.formats.declaration import parse_formats
from compactor.model import Compression, Format, QuarantineReason
from tests.support.examples import TOO_DEEP

FLOW_HEADER = (
    b"version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes "
    b"start end action log-status"
)
FLOW_RECORD = (
    b"2 123456789010 eni-1235b8ca 172.31.16.139 172.31.16.21 20641 22 6 20 4249 1418530010 "
    b"1418530070 ACCEPT OK\n"
)
CLOUDFRONT_HEADER = b"#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip"
TRAIL_KEY = "AWSLogs/1/CloudTrail/us-east-1/1_CloudTrail_us-east-1_20230710T1220Z_x.json.gz"
BOM = b"\xef\xbb\xbf"
DATED = b"2026-01-31T12:00:00Z INFO a line of a log\n"
CSV = Declaration("*", "csv", header=True)


def found(
    head: bytes, key: str = "logs/x", *, complete: bool = True, declared: Declaration | None = None
) -> Detected:
    detected = detect(head, key, complete=complete, declaration=declared)
    assert detected is not None
    return detected


def refusal(
    head: bytes, key: str = "logs/x", *, complete: bool = True, declared: Declaration | None = None
) -> str:
    with pytest.raises(UnreadableSource) as caught:
        detect(head, key, complete=complete, declaration=declared)
    return caught.value.reason


@pytest.mark.parametrize(
    ("head", "key", "expected"),
    [
        (b'{"Records":[{"a":1}]}', TRAIL_KEY, Format.CLOUDTRAIL),
        (b'{"Records":[{"a":1}]}', "anything", Format.CLOUDTRAIL),
        (b' {\r\n "Records" :\n[ ]}', "anything", Format.CLOUDTRAIL),
        (b'{"Records":[{"a":"' + b"x" * 70_000, TRAIL_KEY, Format.CLOUDTRAIL),
        (b'{"Records":[{"a":1}]}\n{"Records":[{"a":2}]}\n', "queue", Format.JSON_LINES),
        (b'{"Records":[{"a":1}]}{"Records":[]}', "firehose", Format.UNDELIMITED_JSON),
        (b'{"a":1}{"a":2}', "x", Format.UNDELIMITED_JSON),
        (b'{"a":1}\t {"a":2}\n{"a":3}', "x", Format.UNDELIMITED_JSON),
        (b'{"a":1}\n{"a":2}{"a":3}', "x", Format.UNDELIMITED_JSON),
        (b'{"a":"}{"}{"a":2}', "x", Format.UNDELIMITED_JSON),
        (b'{"a":1}{"b":"' + b"x" * 70_000, "x", Format.UNDELIMITED_JSON),
        (b'{"a":"' + b"x" * 70_000 + b'"}{"b":1}', "x", Format.UNDELIMITED_JSON),
        (b'{"a":"}{"}\n', "x", Format.JSON_LINES),
        (b'{"a":"\\"}{"}\n', "x", Format.JSON_LINES),
        (b'{"a":"\\\\"}{"b":1}', "x", Format.UNDELIMITED_JSON),
        (b'\n \t{"a":1}', "x", Format.JSON_LINES),
        (b'{"a":1}\r\n\r\n{"a":2} \r\n', "x", Format.JSON_LINES),
        (b'{"a":NaN,"b":[-Infinity]}\n{"cut":"\\ud83d"}', "x", Format.JSON_LINES),
        (b"[2024-01-01 10:00:00] INFO started", "x", Format.TEXT),
        (b'79a bucket [06/Feb/2019:00:00:38 +0000] 192.0.2.3 "GET /" 200', "x", Format.TEXT),
        (b"https 2018-07-02T22:23:00.186641Z app/lb/50dc 192.0.2.1:2817", "x.log", Format.TEXT),
    ],
)
def test_format_is_recognised_by_the_bytes(head: bytes, key: str, expected: Format) -> None:
    complete = len(head) < 65_536 or head.endswith(b"}")
    assert found(head, key, complete=complete) == Detected(expected)
    assert found(BOM + head, key, complete=complete) == Detected(expected)


@pytest.mark.parametrize(
    "name",
    [
        "app.log",
        "app.log.1",
        "app.log.gz",
        "app.log.3.gz",
        "app.log-20260131.zst",
        "app.log.2026-01-31-12",
        "app.log-object1A2b",
        "APP.LOG",
    ],
)
def test_lines_are_text_under_the_name_of_a_log(name: str) -> None:
    assert found(b"user=ann logged in\nno date at all", f"dt=1/{name}") == Detected(Format.TEXT)


@pytest.mark.parametrize(
    "name", ["app", "app.txt", "app.out", "catalog", "blog.html", "x.logs", "app.log.csv", "x.csv"]
)
def test_lines_without_dates_are_left_alone_under_any_other_name(name: str) -> None:
    assert refusal(b"user=ann logged in\nno date at all\n", name) == "unknown_format"


@pytest.mark.parametrize(
    "line",
    [
        b"2026-01-31 12:00:00,123 INFO x",
        b"2026/01/31 12:00:00 [error] 31#31: x",
        b"Jan 31 12:00:00 host app[1]: x",
        b"Jan  3 12:00:00 host app[1]: x",
        b"[Sat Jan 31 12:00:00.123 2026] [core:notice] x",
        b"[31/Jan/2026:12:00:00 +0000] x",
        b"31-Jan-2026 12:00:00.123 INFO x",
        b"31.01.2026 12:00:00 x",
        b"1/31/2026 12:00 x",
        b"<34>1 2026-01-31T12:00:00Z host app - - x",
        b'192.0.2.1 - ann [31/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 12 "-" "x"',
        b"h2 2026-01-31T12:00:00.1Z app/lb/50dc 192.0.2.1:2817 - x",
        b"START RequestId: 6bc28136-2b3c-4f42-8c38-6a3b4f1e3f2a Version: $LATEST",
        b"type=SYSCALL msg=audit(1364481363.243:24287): x",
        FLOW_RECORD[:-1],
    ],
)
def test_a_first_line_that_begins_like_a_log_makes_text_of_other_names(line: bytes) -> None:
    content = line + b"\n  continued\n" + line + b"\n"
    for name in ("x", "x.txt", "x.json"):
        assert found(content, name) == Detected(Format.TEXT)
    assert found(line, "x") == Detected(Format.TEXT)
    assert found(line + b"\n\tat the.same.Entry\n", "x") == Detected(Format.TEXT)


@pytest.mark.parametrize(
    "content",
    [
        b"2026-01-31 12:00:00 Report of the day\nid,name\n1,ann\n2,bob\n",
        b"  indented\n" + DATED,
        b"continues an entry\n" + DATED * 3,
        b"2026-01-31,12:00,x\n2026-01-31,12:01,y\n",
        b"2026-01-31\n2026-02-01\n",
    ],
)
def test_a_date_above_a_table_or_below_another_line_makes_no_log(content: bytes) -> None:
    assert refusal(content, "x") == QuarantineReason.UNKNOWN_FORMAT


def test_tables_by_name_are_only_ever_declared() -> None:
    for name in ("x.csv", "x.tsv", "x.CSV.gz", "x.csv.zst"):
        assert refusal(b"2026-01-31 12:00:00,1\n2026-01-31 12:00:01,2\n", name) == "unknown_format"
        assert refusal(b"id,name\n1,x\n", name) == "unknown_format"
    assert found(b"id,name\n1,x\n", "x.csv", declared=CSV).header == b"id,name"


@pytest.mark.parametrize("name", ["x.log", "x", "x.json"])
@pytest.mark.parametrize(
    "content",
    [
        b'{\n  "a": 1\n}\n',
        b'{"a": 1}\n{"b": \n',
        b'{"a": 1}\nno object\n',
        b'{"a": 1} and more\n',
        b"{",
    ],
)
def test_what_begins_like_json_and_is_not_proven_is_left_alone(name: str, content: bytes) -> None:
    assert refusal(content, name) in {"unknown_format", "open_end", "malformed_document"}


def test_one_object_on_one_line_is_a_record() -> None:
    for line in (b'{"a":1}', b'{"name":"x","version":"1.0","dependencies":{}}\n'):
        assert found(line, "package.json") == Detected(Format.JSON_LINES)


@pytest.mark.parametrize("format", ["text", "csv", "json_lines", "vpc_flow", None])
def test_text_has_no_nul_even_if_it_is_declared(format: str | None) -> None:
    declared = None
    if format is not None:
        (declared,) = parse_formats(
            [{"format": format, **({"header": True} if format == "csv" else {})}]
        )
    content = b"2026-01-31 12:00:00 a\0b\n" * 2
    assert refusal(content, "x.log", declared=declared) in {"binary", "unknown_format"}
    if format in (None, "text"):
        assert refusal(content, "x.log", declared=declared) == "binary"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_wide_encodings_are_named(encoding: str) -> None:
    for declared in (None, Declaration("*", "text"), CSV):
        reason = refusal(DATED.decode().encode(encoding), "x.log", declared=declared)
        assert reason == QuarantineReason.ENCODING


def test_other_encodings_are_declared() -> None:
    content = "2026-01-31 12:00:00 caf\u00e9\n".encode("latin-1") * 2
    assert refusal(content, "x.log") == QuarantineReason.ENCODING
    assert refusal(content, "x.log", declared=Declaration("*", "text")) == "unknown_encoding"
    declared = Declaration("*", "text", single_byte=True)
    assert found(content, "x.log", declared=declared) == Detected(Format.TEXT)


@pytest.mark.parametrize("declared", [None, Declaration("*", "text")])
def test_a_source_that_ends_within_a_character_or_a_line_end_is_not_joined(
    declared: Declaration | None,
) -> None:
    text = DATED + "2026-01-31T12:00:01Z caf\u00e9".encode()
    for content in (text[:-1], DATED + b"2026-01-31T12:00:01Z x\r"):
        assert refusal(content, "x.log", declared=declared) == QuarantineReason.OPEN_END
    assert found(text, "x.log", declared=declared) == Detected(Format.TEXT)


def test_what_a_declaration_contradicts_is_left_alone() -> None:
    for format, content in (
        ("json_lines", b"id,name\n1,x\n"),
        ("json_lines", b"[1]\n"),
        ("cloudfront", b"data\n"),
        ("json_list", b'{"a":1}'),
    ):
        (declared,) = parse_formats(format)
        reason = refusal(content, "x", declared=declared)
        assert reason in {"malformed_document", "unknown_format"}
    assert refusal(b"a,b,c", "x", declared=CSV, complete=False) == "malformed_document"


def test_a_declared_source_with_two_lists_of_fields_is_left_alone() -> None:
    content = CLOUDFRONT_HEADER + b"\n2019-12-04\t21\n#Fields: time date\n21\t2019-12-04\n"
    assert refusal(content, declared=Declaration("*", "cloudfront")) == "unknown_format"


def test_a_declaration_counts_more_than_a_name_or_content() -> None:
    text = Declaration("*", "text")
    for content in (b"id,name\n", b'{\n"a": 1\n}\n', b"[1]\n", FLOW_HEADER + b"\n"):
        assert found(content, "x.csv", declared=text) == Detected(Format.TEXT)


@pytest.mark.parametrize("declared", [None, Declaration("*", "text"), CSV])
def test_two_byte_order_marks_are_refused_for_a_reader_would_drop_both(
    declared: Declaration | None,
) -> None:
    for line in (DATED, b'{"a": 1}\n', b"a,b\n1,2\n"):
        with pytest.raises(UnreadableSource, match="unknown_format: it begins with two byte order"):
            detect(2 * BOM + line, "x.csv", complete=True, declaration=declared)


def test_a_source_without_content_fits_any_group() -> None:
    for content in (b"", BOM):
        for declared in (None, CSV, Declaration("*", "cloudtrail")):
            assert detect(content, "x.csv", complete=True, declaration=declared) is None


def test_the_sentence_for_a_source_left_alone_names_the_setting_once() -> None:
    with pytest.raises(UnreadableSource) as caught:
        detect(b"user=ann\n", "x.txt", complete=True)
    assert str(caught.value) == (
        "unknown_format: neither its name nor its first lines show its format; it starts with"
        " 'user=ann\\n'; formats decides: declare its format there, if its lines are records"
    )


def test_no_random_bytes_are_taken_for_anything() -> None:
    generator = random.Random(7)
    for size in (1, 3, 40, 3_000):
        for _ in range(50):
            content = bytes([0x80 + generator.randrange(0x40)]) + generator.randbytes(size)
            assert refusal(content, "x.log") in {"unknown_encoding", "binary", "open_end"}


def test_flow_logs_are_recognised_by_their_field_names_in_any_order() -> None:
    shuffled = FLOW_HEADER.split()
    random.Random(1).shuffle(shuffled)
    for header in (FLOW_HEADER, b" ".join(shuffled), b"srcaddr dstaddr traffic-path"):
        record = b" ".join(FLOW_RECORD.split()[: len(header.split())])
        for line_end in (b"\n", b"\r\n"):
            content = header + line_end + record + line_end
            assert found(content) == Detected(Format.VPC_FLOW, header)


def test_flow_logs_with_unknown_fields_are_recognised_by_the_key_and_the_known_ones() -> None:
    header = b"version resource-type tgw-id tgw-new-field"
    key = "AWSLogs/1/vpcflowlogs/us-east-1/2024/01/01/1_vpcflowlogs_us-east-1_fl-1_x.log.gz"
    content = header + b"\n6 TransitGateway tgw-1 x\n"
    assert found(content, key) == Detected(Format.VPC_FLOW, header)
    assert refusal(content) == QuarantineReason.UNKNOWN_FORMAT
    assert found(FLOW_RECORD, key) == Detected(Format.TEXT)


@pytest.mark.parametrize(
    "content",
    [
        b"start end type\nof a text in words\n",
        b"version new-one new-two new-three\n1 2 3 4\n",
        FLOW_HEADER + b"\n" + FLOW_RECORD + FLOW_HEADER + b"\n" + FLOW_RECORD,
        b"srcaddr srcaddr dstaddr\n1 2 3\n",
    ],
)
def test_a_line_of_words_is_no_header_of_flow_logs_unless_its_rows_fit(content: bytes) -> None:
    key = "AWSLogs/1/vpcflowlogs/us-east-1/2024/01/01/1_vpcflowlogs_us-east-1_fl-1_x.log.gz"
    assert refusal(content, key) == QuarantineReason.UNKNOWN_FORMAT


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_both_comment_lines_of_cloudfront_are_its_header(line_end: bytes) -> None:
    header = CLOUDFRONT_HEADER.replace(b"\n", line_end)
    content = header + line_end + b"2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.100" + line_end
    assert found(content) == Detected(Format.CLOUDFRONT, header)
    assert found(header) == Detected(Format.CLOUDFRONT, header)
    assert refusal(header, complete=False) == QuarantineReason.MALFORMED


@pytest.mark.parametrize(
    "content",
    [
        b"#Software: IIS\n#Version: 1.0\n#Fields: date\n2026-01-31\n",
        b"#Version: 1.0\ndata\n",
        CLOUDFRONT_HEADER + b"\n2019-12-04\t21\n#Fields: time date\n21\t2019-12-04\n",
        CLOUDFRONT_HEADER + b"\n#Date: 2019-12-04 00:00:00\n2019-12-04\t21\n",
    ],
)
def test_other_comment_lines_are_left_alone(content: bytes) -> None:
    assert refusal(content) == QuarantineReason.UNKNOWN_FORMAT


def test_a_field_line_may_stand_again_when_it_says_the_same() -> None:
    again = (
        CLOUDFRONT_HEADER + b"\n2019-12-04\t21\n#Fields: date time x-edge-location sc-bytes c-ip"
    )
    assert found(again + b"\n") == Detected(Format.CLOUDFRONT, CLOUDFRONT_HEADER)


@pytest.mark.parametrize("nest", [b"[", b'{"a":'])
def test_deep_nesting_is_left_alone_and_stops_nothing(nest: bytes) -> None:
    assert refusal(nest * TOO_DEEP, complete=False) == QuarantineReason.UNKNOWN_FORMAT
    deep = b'{"a":' + b"[" * TOO_DEEP + b"]" * TOO_DEEP + b"}"
    assert refusal(deep + b"\n" + deep) == QuarantineReason.UNKNOWN_FORMAT


def test_outputs_are_named_for_format_and_compression() -> None:
    assert extension_for(Format.JSON_LINES, Compression.GZIP) == "json.gz"
    assert extension_for(Format.CLOUDTRAIL, Compression.NONE) == "json"
    assert extension_for(Format.TEXT, Compression.NONE) == "log"
    assert extension_for(Format.CSV, Compression.ZSTD) == "csv.zst"
    assert content_type(Format.CSV, Compression.NONE) == "text/csv"
    assert content_type(Format.CSV, Compression.GZIP) == "application/gzip"
    for format in Format:
        for compression in Compression:
            assert extension_for(format, compression)
            assert "/" in content_type(format, compression)
