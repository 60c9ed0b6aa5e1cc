"""Columns given as DDL; tests/spark/test_rows_as_spark.py compares more with Spark's parser."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from compactor.rows.ddl import parse_ddl
from compactor.rows.schema import simple


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id BIGINT, name STRING", "struct<id:bigint,name:string>"),
        ("id: long, a short NOT NULL, b byte", "struct<id:bigint,a:smallint,b:tinyint>"),
        ("a VARCHAR(3), b CHAR(1)", "struct<a:string,b:string>"),
        ("a DEC, b NUMERIC(5)", "struct<a:decimal(10,0),b:decimal(5,0)>"),
        ("a DECIMAL(38,3)", "struct<a:decimal(38,3)>"),
        ("a TIMESTAMP, b TIMESTAMP_LTZ", "struct<a:timestamp,b:timestamp>"),
        ("a TIMESTAMP_NTZ", "struct<a:timestamp_ntz>"),
        ("a MAP<STRING,ARRAY<DATE>>", "struct<a:map<string,array<date>>>"),
        ("a STRUCT<`b c`: DATE, d REAL>", "struct<a:struct<b c:date,d:float>>"),
        ("STRUCT<a: INT>", "struct<a:int>"),
        ("ARRAY<INT>", "struct<value:array<int>>"),
        ("", "struct<>"),
    ],
)
def test_types_and_their_synonyms(text: str, expected: str) -> None:
    assert simple(parse_ddl(text)) == expected


def test_everything_is_nullable_and_comments_are_kept() -> None:
    schema = parse_ddl("a STRUCT<b: INT NOT NULL COMMENT 'it''s\\tb'> NOT NULL, c ARRAY<INT>")
    assert schema.field("a").nullable
    (inner,) = schema.field("a").type
    assert inner.nullable
    assert inner.metadata == {b"comment": b"it's\tb"}
    assert schema.field("c").type == pa.list_(pa.field("element", pa.int32()))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("id BIGINT,", "it ends too early"),
        ("id INT64", "INT64 is not a type"),
        ("a.b INT", "unexpected '.b INT'"),
        ("a DECIMAL(39,0)", "DECIMAL(39,0) is beyond DECIMAL(38,s)"),
        ("a ARRAY<INT", "'>' is missing at the end"),
        ("a INT, a STRING", "two columns are named a"),
        ("1 INT", "'1' is not a name"),
        (f"a {'ARRAY<' * 99}INT{'>' * 99}", "types are nested deeper than 64"),
    ],
)
def test_an_invalid_schema_is_refused_with_a_short_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        parse_ddl(text)
