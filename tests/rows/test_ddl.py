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
        (" id:long,\ta Short,\nb byte ", "struct<id:bigint,a:smallint,b:tinyint>"),
        ("a DECIMAL, b decimal(5)", "struct<a:decimal(10,0),b:decimal(5,0)>"),
        ("a DECIMAL ( 38 , 3 )", "struct<a:decimal(38,3)>"),
        ("a TIMESTAMP, b TIMESTAMP_NTZ", "struct<a:timestamp,b:timestamp_ntz>"),
        ("a MAP<STRING,ARRAY<DATE>>", "struct<a:map<string,array<date>>>"),
        ("a STRUCT<`b``c d`: DATE, e FLOAT>", "struct<a:struct<b`c d:date,e:float>>"),
        ("date DATE, decimal INT, struct STRING", "struct<date:date,decimal:int,struct:string>"),
    ],
)
def test_types_by_name(text: str, expected: str) -> None:
    assert simple(parse_ddl(text)) == expected


def test_elements_of_lists_have_the_name_of_parquet() -> None:
    assert parse_ddl("a ARRAY<INT>").field("a").type == pa.list_(pa.field("element", pa.int32()))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the name of a column is expected instead of ''"),
        ("id BIGINT,", "the name of a column is expected instead of ''"),
        ("1 INT", "the name of a column is expected instead of '1'"),
        ("id INT64", "column 'id' has the type 'INT64'"),
        ("a", "column 'a' has the type ''"),
        ("a.b INT", "column 'a' has the type '.'"),
        ("a VARCHAR(3)", "column 'a' has the type 'VARCHAR(3)'"),
        ("a DECIMAL(39,0)", "column 'a' has the type 'DECIMAL(39,0)'"),
        ("a DECIMAL(0)", "column 'a' has the type 'DECIMAL(0)'"),
        ("a INT NOT NULL", "column 'a' is followed by 'NOT'"),
        ("a ARRAY<INT", "the type of column 'a' has '' instead of '>'"),
        ("a MAP<INT>", "the type of column 'a' has '>' instead of ','"),
        ("a INT, a STRING", "two columns are named 'a'"),
        ("a STRUCT<b: INT, b: INT>", "two columns are named 'a.b'"),
        (f"a {'ARRAY<' * 99}INT{'>' * 99}", "column 'a' has the type 'ARRAY'"),
    ],
)
def test_an_invalid_schema_is_refused_with_a_short_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        parse_ddl(text)
