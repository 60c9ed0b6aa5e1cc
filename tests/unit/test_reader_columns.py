"""The columns of a table, and how engines read its objects, by the beginnings of a few."""

from __future__ import annotations

import gzip
import io
import json
import re
from datetime import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.errors import InvalidInput
from compactor.formats import Detected
from compactor.formats.log_fields import LOGS
from compactor.model import Format, SourceObject
from compactor.readers.formats import (
    Reading,
    is_read_by,
    log_of,
    require_exact,
    table_descriptor,
)
from compactor.readers.inferred_columns import found_in
from compactor.readers.states import Held
from compactor.readers.table_creation import require_alike, table_input
from tests.support.examples import PARTITION, columns, settings
from tests.support.memory_store import MemoryStore
from tests.support.world import World

TABLE = {"reader_table": "glue:lake.logs", "date_format": "%Y/%m/%d", "window": "2026-01-02.."}
ALB = (
    "https 2026-01-02T03:04:05.123456Z app/lb/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.1 "
    '0.048 0.037 200 200 0 57 "GET https://www.example.com:443/ HTTP/1.1" "curl/7.46.0" '
    "ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/t/7 "
    '"Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:eu-west-1:1:c/1" 1 '
    '2026-01-02T03:04:05.022000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_1'
)
OWNER = "79a59df900b949e5" * 4
S3 = (
    f"{OWNER} bucket [06/Feb/2026:00:00:38 +0000] 192.0.2.3 {OWNER} "
    '3E57427F3EXAMPLE REST.GET.VERSIONING - "GET /bucket?versioning HTTP/1.1" 200 - 113 - 7 - "-" '
    '"S3Console/0.4" - s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtj= '
    "SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader bucket.s3.us-west-1.amazonaws.com TLSV1.2 - -"
)


def found(
    format: Format, *lines: str, header: bytes = b"", dialect: bytes = b"", on_lines: bool = False
) -> tuple[dict[str, str], Reading]:
    body = "\n".join([*lines, ""]).encode()
    detected = Detected(format, header, dialect)
    columns, reading = found_in(detected, [body], settings(), lines=on_lines)
    return {one["name"]: one["type"] for one in columns}, reading


def test_types_are_those_that_hold_every_value() -> None:
    columns, reading = found(
        Format.JSON_LINES,
        '{"id": 1, "n": 1, "s": "a", "b": true, "o": {"x": 1, "y": [1]}, "m": 1, "z": null}',
        '{"id": 9223372036854775808, "n": 1.5, "o": {"w": "v"}, "m": "1", "l": [], "e": {}}',
    )
    assert columns == {
        "id": "string",
        "n": "double",
        "s": "string",
        "b": "boolean",
        "o": "struct<w:string,x:bigint,y:array<bigint>>",
        "m": "string",
        "z": "string",
        "l": "array<string>",
        "e": "string",
    }
    assert reading.exact


def test_what_no_type_can_name_or_hold_exactly_is_text() -> None:
    columns, _ = found(
        Format.JSON_LINES,
        '{"a": {"x-y": 1, "z": 2}, "b": {"c": {"é": 1}}, "d": 0.1, "e": 0.10000000000000000001}',
        '{"a": {"z": 3}, "d": 9007199254740993, "F": true, "f": 1, "F": true}',
        '{"F": true}',
    )
    assert columns == {
        "a": "string",
        "b": "struct<c:string>",
        "d": "string",
        "e": "string",
        "f": "boolean",
    }


def test_a_line_that_is_cut_and_a_record_nested_without_end_do_no_harm() -> None:
    deep = '{"a": ' * 500 + "1" + "}" * 500
    body = deep.encode() + b'\n{"b": 1}\n{"c": "cu'
    columns, _ = found_in(Detected(Format.JSON_LINES), [body], settings(), lines=False)
    assert [one["name"] for one in columns] == ["a", "b"]
    assert columns[0]["type"].count("struct") < 10


def test_names_that_engines_do_not_take_are_mapped() -> None:
    columns, reading = found(Format.JSON_LINES, '{"user-agent": "x", "@time": 1}')
    assert columns == {"user_agent": "string", "time": "bigint"}
    assert reading.parameters == {"mapping.user_agent": "user-agent", "mapping.time": "@time"}


@pytest.mark.parametrize(
    ("header", "lines", "names", "skips"),
    [
        (b"Id;User Name", ["Id;User Name", "1;x"], ["id", "user_name"], True),
        (b"", ["a;b", "c;d"], ["column1", "column2"], False),
        (b"1;2", ["1;2", "3;4"], ["1", "2"], True),
    ],
)
def test_a_header_names_columns_and_is_skipped(
    header: bytes, lines: list[str], names: list[str], skips: bool
) -> None:
    columns, reading = found(Format.CSV, *lines, header=header, dialect=b";2 lf quoted ")
    assert list(columns) == names
    assert set(columns.values()) == {"string"}
    assert reading.parameters["field.delim"] == ";"
    assert (reading.table == {"skip.header.line.count": "1"}) is skips


def test_a_table_for_quotes_reads_objects_without_any_too() -> None:
    header = b"id,name\n"
    signed = Detected(Format.CSV, b"id,name", b",2 lf quoted ")
    quoted, plain = (
        found_in(signed, [header + row], settings(), lines=False)
        for row in (b'1,"a, b"\n', b"1,a\n")
    )
    table = table_descriptor(quoted[1], quoted[0], "s3://lake/none/")
    assert is_read_by(table, *plain)
    assert not is_read_by(table_descriptor(plain[1], plain[0], "s3://lake/none/"), *quoted)


def test_quotes_take_another_serde_which_cannot_be_listed() -> None:
    _, reading = found(Format.CSV, "a,b", '"1,2",3', dialect=b",2 lf quoted ")
    assert "OpenCSV" in reading.serde
    with pytest.raises(InvalidInput, match="lists of objects"):
        require_exact(reading, Format.CSV, settings())
    require_exact(reading, Format.CSV, settings(**TABLE, reader_mode="compacted"))


@pytest.mark.parametrize(
    ("format", "lines", "names", "header"),
    [
        (Format.VPC_FLOW, ["version account-id", "2 1"], ["version", "account_id"], "1"),
        (
            Format.CLOUDFRONT,
            ["#Version: 1.0", "#Fields: date cs(User-Agent)", "2026-01-02\tx"],
            ["date", "cs_user_agent"],
            "2",
        ),
    ],
)
def test_logs_with_a_header_skip_it(
    format: Format, lines: list[str], names: list[str], header: str
) -> None:
    columns, reading = found(format, *lines)
    assert list(columns) == names
    assert reading.table == {"skip.header.line.count": header}


@pytest.mark.parametrize(("line", "log"), [(ALB, LOGS["alb"]), (S3, LOGS["s3_access"])])
def test_known_logs_have_their_documented_columns(line: str, log: Any) -> None:
    assert log_of([line]) is log
    columns, reading = found(Format.TEXT, line)
    match = re.fullmatch(reading.parameters["input.regex"], line)
    assert match is not None
    row = dict(zip(columns, match.groups(), strict=True))
    assert row["user_agent"] in ("curl/7.46.0", "S3Console/0.4")
    assert row.get("classification_reason", "-") == "-"
    assert row.get("time") in ("2026-01-02T03:04:05.123456Z", "06/Feb/2026:00:00:38 +0000")


@pytest.mark.parametrize(
    ("line", "old", "new", "columns"),
    [
        (S3, '"S3Console/0.4"', '"Mozilla "x" y"', {"user_agent": 'Mozilla "x" y'}),
        (S3, "/bucket?versioning", '/a"b" c', {"request": 'GET /a"b" c HTTP/1.1'}),
        (ALB, '"curl/7.46.0"', '"curl "7" (x) "', {"user_agent": 'curl "7" (x) '}),
        (S3, " 79a59df900", " arn:aws:sts::1:assumed-role/My Role/a b 79a59df900", {}),
    ],
)
def test_what_a_client_sent_may_have_quotes_and_blanks(
    line: str, old: str, new: str, columns: dict[str, str]
) -> None:
    odd = line.replace(old, new, 1)
    assert odd != line
    names, reading = found(Format.TEXT, odd)
    match = re.fullmatch(reading.parameters["input.regex"], odd)
    assert match is not None
    usual = re.fullmatch(reading.parameters["input.regex"], line)
    assert usual is not None
    row, before = (dict(zip(names, one.groups(), strict=True)) for one in (match, usual))
    requester = {"requester": row["requester"]} if "arn:" in new else {}
    assert row == {**before, **columns, **requester}


def test_fields_that_older_logs_lack_are_null_and_lines_of_another_form_have_one_column() -> None:
    old = ALB.partition(' "www')[0]
    assert old != ALB
    names, reading = found(Format.TEXT, old)
    match = re.fullmatch(reading.parameters["input.regex"], old)
    assert match is not None
    row = dict(zip(names, match.groups(), strict=True))
    assert (row["type"], row["domain_name"], row["classification"]) == ("https", None, None)
    assert list(found(Format.TEXT, f"{ALB}\n{ALB[:60]}\n")[0]) == ["line"]


def test_other_text_is_one_column() -> None:
    columns, reading = found(Format.TEXT, "2026-01-02 03:04:05 INFO started")
    assert columns == {"line": "string"}
    assert reading.parameters == {"input.regex": "(.*)"}


def test_cloudtrail_is_read_by_its_own_input_format_or_as_lines() -> None:
    document = json.dumps({"Records": [{"eventVersion": "1.08"}, {"eventTime": "now"}]})
    columns, reading = found(Format.CLOUDTRAIL, document)
    assert columns == {"eventversion": "string", "eventtime": "string"}
    assert "CloudTrail" in reading.input_format
    assert not reading.exact
    columns, reading = found(Format.CLOUDTRAIL, '{"eventTime": "x"}', on_lines=True)
    assert columns == {"eventtime": "string"}
    assert (reading.listed, reading.raw) == (True, False)


@pytest.mark.parametrize("format", [Format.JSON_ARRAY, Format.JSON_LIST])
def test_what_no_engine_reads_is_refused(format: Format) -> None:
    with pytest.raises(InvalidInput):
        found(format, "[]")


def test_a_sample_without_a_record_is_reported() -> None:
    with pytest.raises(InvalidInput, match="no record with members"):
        found(Format.JSON_LINES, "1", "[]")


def made(*bodies: bytes, **given: Any) -> dict[str, Any]:
    store = MemoryStore()
    store.add_bucket("lake")
    objects = []
    for number, body in enumerate(bodies):
        key = f"{PARTITION.prefix}{number}"
        store.seed("source", key, body)
        objects.append(SourceObject("source", key, "e", len(body), 0.0))
    return table_input(settings(**TABLE, **given), PARTITION, Held(tuple(objects)), store)


def test_a_table_is_made_of_packed_objects_of_which_only_the_begin_is_read() -> None:
    body = gzip.compress(b"".join(b'{"id": %d, "x": "%064d"}\n' % (n, n**7) for n in range(20_000)))
    assert len(body) > 128 << 10
    columns = made(body)["StorageDescriptor"]["Columns"]
    assert columns == [{"Name": "id", "Type": "bigint"}, {"Name": "x", "Type": "string"}]


def test_columns_are_named_by_the_header_that_is_pinned_for_the_sources() -> None:
    world = World()
    for number in range(3):
        world.put(f"{number}.csv", b"Id,User Name\n%d,x\n" % number)
    world.run()
    (body,) = world.store.contents("lake", "compacted/").values()
    (key,) = world.store.contents("lake", "compacted/")
    given = settings(**TABLE)
    output = SourceObject("lake", key, "e", len(body), 0.0)
    for headed in (True, False):
        table = table_input(given, PARTITION, Held((output,)), world.store)
        names = [one["Name"] for one in table["StorageDescriptor"]["Columns"]]
        assert names == (["id", "user_name"] if headed else ["column1", "column2"])
        assert table["Parameters"].get("skip.header.line.count") == ("1" if headed else None)
        given = settings(**TABLE, formats=columns(header=False))


@pytest.mark.parametrize(
    ("declared", "key", "header"),
    [
        ([("*/part-*", True), ("*", False)], "a/compacted-1.csv", None),
        ([("a/*", True), ("*", False)], "a/compacted-1.csv", True),
        ([("a/*", True), ("*", False)], "b/compacted-1.csv", False),
        ([("a/*.csv.gz", True), ("b/*", False)], "a/x/compacted-1.csv", True),
        ([("a/*.csv.gz", True), ("b/*", False)], "b/compacted-1.csv", False),
        ([("*.csv", True), ("*.csv.gz", True)], "compacted-1.csv.zst", True),
    ],
)
def test_outputs_are_what_is_declared_of_their_directory(
    declared: list[tuple[str, bool]], key: str, header: bool | None
) -> None:
    formats = [{"match": match, "format": "csv", "header": has} for match, has in declared]
    made_with = settings(formats=formats, s3_source_uri="s3://source/")
    if header is None:
        with pytest.raises(InvalidInput, match="differ by directory or format"):
            made_with.declared_for_output(f"compacted/{key}")
        return
    declaration = made_with.declared_for_output(f"compacted/{key}")
    assert declaration is not None
    assert declaration.header is header


def test_a_table_of_undeclared_parquet_takes_parquet_and_nothing_else() -> None:
    store = MemoryStore()
    bodies = {"a.parquet": parquet(id=[1]), "b.json": b'{"id": 1}\n'}
    objects = {}
    for name, body in bodies.items():
        store.seed("source", PARTITION.prefix + name, body)
        objects[name] = SourceObject("source", PARTITION.prefix + name, name, len(body), 0.0)
    given = settings(**TABLE)
    made_of = Held((objects["a.parquet"],))
    table = table_input(given, PARTITION, made_of, store)
    require_alike(table, given, made_of, store)
    with pytest.raises(InvalidInput, match=r"reader_table: \S+b.json"):
        require_alike(table, given, Held((objects["b.json"],)), store)


def parquet(**columns: list[Any]) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table(columns), written)
    return written.getvalue()


def test_columns_of_parquet_are_those_of_its_footers() -> None:
    table = made(parquet(Id=[1], name=["a"]), parquet(id=[2], tags=[["x"]]), format="parquet")
    storage = table["StorageDescriptor"]
    assert [(one["Name"], one["Type"]) for one in storage["Columns"]] == [
        ("id", "bigint"),
        ("name", "string"),
        ("tags", "array<string>"),
    ]
    assert "Parquet" in storage["InputFormat"]


@pytest.mark.parametrize(
    ("bodies", "told"),
    [
        ([b"PAR1"], "no object with a Parquet footer"),
        ([parquet(id=[1]), parquet(id=["a"])], "id is bigint in some objects, and string in "),
        ([parquet(id=[1], at=[time(12)])], "at is time64"),
    ],
)
def test_columns_of_parquet_that_no_engine_reads_are_asked_for(
    bodies: list[bytes], told: str
) -> None:
    with pytest.raises(InvalidInput, match=f"{told}.*make it in the catalog"):
        made(*bodies, format="parquet")
