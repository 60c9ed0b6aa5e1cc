"""What a source's first bytes and its key show of its format."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zipfile

import pytest

from compactor.errors import UnreadableSource
from compactor.formats import Detected, content_type, detect, extension_for
from compactor.formats.csv_evidence import CsvDialect, Decision, Undecided
from compactor.formats.first_record import undecided
from compactor.formats.spec import Decide
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


def found(
    head: bytes,
    key: str = "logs/x",
    *,
    complete: bool = True,
    forced: Format | None = None,
    csv_header: str = "auto",
    decide: Decide = undecided,
) -> Detected:
    detected = detect(
        head, key, complete=complete, forced=forced, csv_header=csv_header, decide=decide
    )
    assert detected is not None
    return detected


def refusal(
    head: bytes, key: str = "logs/x", *, complete: bool = True, decide: Decide = undecided
) -> str:
    with pytest.raises(UnreadableSource) as caught:
        detect(head, key, complete=complete, forced=None, decide=decide)
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
    ("key", "expected"),
    [
        ("a/x.csv", Format.CSV),
        ("a/x.CSV.gz", Format.CSV),
        ("a/x.csv.zst", Format.CSV),
        ("a/x.tsv", Format.TSV),
        ("a/x.tsv.gzip", Format.TSV),
    ],
)
def test_delimited_formats_are_recognised_by_the_key(key: str, expected: Format) -> None:
    content = b"name,city\tage\r\nx,y\tz\r\n"
    dialect = b"\t0 crlf" if expected is Format.TSV else b",0 crlf"
    assert found(content, key, csv_header="present") == Detected(
        expected, b"name,city\tage", dialect
    )


@pytest.mark.parametrize(
    ("content", "header"),
    [
        (b"a,b\nc,d\n", b"a,b"),
        (b"a,b\r\nc,d\r\n", b"a,b"),
        (BOM + b"a,b\nc,d\n", b"a,b"),
        (b"a,b", b"a,b"),
        (b'"a\nb","c ""x""\n"\nd,e\n', b'"a\nb","c ""x""\n"'),
        (b'a,"b\nc,d\n', b'a,"b'),
        (b'a"b,c\nd,e\n', b'a"b,c'),
        (b",name,city\n1,x,y\n", b",name,city"),
    ],
)
def test_a_csv_header_is_the_first_record_without_bom_and_line_end(
    content: bytes, header: bytes
) -> None:
    dialect = b",0 crlf" if b"\r\n" in content else b",0 lf"
    assert found(content, "x.csv", csv_header="present") == Detected(Format.CSV, header, dialect)


def decides(header: bytes, *types: str) -> Decide:
    """A data set of which one shape is decided."""

    def decide(_: str, delimiter: bytes, columns: int) -> Decision:
        if (delimiter, columns) != (b",", len(types)):
            return Undecided("another shape")
        return CsvDialect(delimiter, columns, header, types)

    return decide


def test_what_the_data_set_decides_is_the_header_or_none() -> None:
    headed, rows = decides(b"id,name", "number", ""), decides(b"", "number", "")
    content = b"id,name\n1,x\n2,y\n"
    assert found(content, "x.csv", decide=headed) == Detected(Format.CSV, b"id,name", b",2 lf")
    assert found(content[8:], "x.csv", decide=rows) == Detected(Format.CSV, b"", b",2 lf")
    assert found(content[8:], "x.csv", csv_header="absent") == Detected(Format.CSV, b"", b",0 lf")
    for other, decide in ((content[8:], headed), (content, rows), (b"alone\n", rows)):
        assert refusal(other, "x.csv", decide=decide) == QuarantineReason.AMBIGUOUS_HEADER


def test_no_source_shows_by_itself_whether_it_has_a_header() -> None:
    for content in (b"id,name\n1,x\n2,y\n", b"1,x\n2,y\n", b"a,b\nc,d\n", b",,\na,b,c\n"):
        assert refusal(content, "x.csv") == QuarantineReason.AMBIGUOUS_HEADER
        plain = found(content, "x.csv", csv_header="absent")
        assert plain == Detected(Format.CSV, b"", b",0 lf")


def test_a_header_longer_than_the_head_is_refused_unless_the_head_is_all() -> None:
    header = b",".join(b"column_%d" % n for n in range(9000))
    assert len(header) > 65_536
    assert refusal(header[:65_536], "x.csv", complete=False) == QuarantineReason.MALFORMED
    assert found(header, "x.csv", csv_header="present").header == header
    row = b"\n" + b"1," * 8999 + b"1\n"
    assert found(header + row, "x.csv", complete=False, csv_header="present").header == header


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


def zipped() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("a", "b")
    return target.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"PAR1\x15\x04\x15",
        b"ORC\x11\x22",
        b"Obj\x01\x04\x14avro.codec",
        b"\xff\x06\x00\x00sNaPpY",
        b"\x7fELF\x02",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0JFIF",
        b"GIF89a",
        b"%PDF-1.7",
        zipped(),
        bz2.compress(b"text"),
        bz2.compress(b""),
        lzma.compress(b"text"),
        gzip.compress(gzip.compress(b"text", mtime=0), mtime=0),
        gzip.compress(b"text", mtime=0),
        b"text and then a \x00 byte",
        bytes(range(1, 256)),
        random.Random(4).randbytes(2000).replace(b"\0", b""),
    ],
)
def test_binary_content_is_refused_whatever_its_name(content: bytes) -> None:
    for key in ("x", "x.json", "x.csv", "x.log.gz"):
        assert refusal(content, key) == QuarantineReason.BINARY


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (bz2.compress(b"text"), "bzip2"),
        (lzma.compress(b"text"), "xz"),
        (b"\x04\x22\x4d\x18\x64\x40\xa7", "lz4"),
        (b"\xff\x06\x00\x00sNaPpY", "snappy"),
        (gzip.compress(b"text", mtime=0), "gzip within its compression"),
    ],
)
def test_a_compression_that_is_not_read_is_named(content: bytes, name: str) -> None:
    with pytest.raises(UnreadableSource, match=f"it is {name}; it starts with '"):
        detect(content, "x", complete=True, forced=None)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_wide_encodings_are_recognised_by_their_mark_or_their_nuls(encoding: str) -> None:
    text = "2026-01-31T12:00:00Z INFO a line of a log\n" * 3
    assert refusal(text.encode(encoding)) == QuarantineReason.ENCODING


def test_utf_16_is_refused_even_as_the_format_that_is_given() -> None:
    for format in (Format.TEXT, Format.CSV, Format.JSON_LINES):
        with pytest.raises(UnreadableSource, match="unknown_encoding: it is UTF-16"):
            detect("a,b\n".encode("utf-16"), "x", complete=True, forced=format)


@pytest.mark.parametrize("forced", [None, Format.TEXT, Format.CSV, Format.JSON_LINES])
def test_two_byte_order_marks_are_refused_for_a_reader_would_drop_both(
    forced: Format | None,
) -> None:
    for line in (b"2026-01-02T03:04:05Z INFO started\n", b'{"a": 1}\n', b"a,b\n1,2\n"):
        with pytest.raises(UnreadableSource, match="unknown_format: it begins with two byte order"):
            detect(2 * BOM + line, "x.csv", complete=True, forced=forced)


def test_a_source_without_content_fits_any_group() -> None:
    for content in (b"", BOM):
        for forced in (None, Format.CSV, Format.CLOUDTRAIL):
            assert detect(content, "x.csv", complete=True, forced=forced) is None


@pytest.mark.parametrize("forced", [one for one in Format if one is not Format.JSON_LIST])
def test_a_forced_format_is_not_questioned(forced: Format) -> None:
    head = b"#a,b 1\nc,d\n"
    headed = {Format.CSV, Format.TSV, Format.VPC_FLOW, Format.CLOUDFRONT}
    header = b"#a,b 1" if forced in headed else b""
    detected = found(head, TRAIL_KEY, forced=forced, csv_header="present")
    dialects = {Format.CSV: b",0 lf", Format.TSV: b"\t0 lf"}
    assert detected == Detected(forced, header, dialects.get(forced, b""))


def test_a_forced_header_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnreadableSource, match="malformed"):
        detect(b"data\n", "x", complete=True, forced=Format.CLOUDFRONT)
    with pytest.raises(UnreadableSource, match="malformed"):
        detect(b"a,b,c", "x", complete=False, forced=Format.CSV)
    with pytest.raises(UnreadableSource, match="malformed"):
        detect(b'{"a":1}', "x", complete=True, forced=Format.JSON_LIST)


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
