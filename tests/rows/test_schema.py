"""Schemas as commits store them, and the safe superset of two."""

from __future__ import annotations

import json
from random import Random

import pyarrow as pa
import pytest

from compactor.rows.ddl import parse_ddl
from compactor.rows.schema import (
    SchemaClash,
    from_spark_json,
    merged,
    near,
    simple,
    to_spark_json,
)
from tests.rows.schemas import schema

_COLLATED = (
    '{"type": "struct", "fields": [{"name": "a", "type": "string",'
    ' "metadata": {"__COLLATIONS": {"a": "icu.UNICODE"}}}]}'
)


def test_json_is_that_of_spark() -> None:
    given = parse_ddl("id BIGINT, `é` ARRAY<STRUCT<a: DECIMAL(5,2), b: MAP<INT, DATE>>>")
    assert to_spark_json(given) == (
        r'{"fields":[{"metadata":{},"name":"id","nullable":true,"type":"long"},'
        r'{"metadata":{},"name":"\u00e9","nullable":true,"type":{"containsNull":true,'
        r'"elementType":{"fields":[{"metadata":{},"name":"a","nullable":true,'
        r'"type":"decimal(5,2)"},{"metadata":{},"name":"b","nullable":true,"type":{'
        r'"keyType":"integer","type":"map","valueContainsNull":true,"valueType":"date"}}],'
        r'"type":"struct"},"type":"array"}}],"type":"struct"}'
    )


@pytest.mark.parametrize("seed", range(50))
def test_any_schema_is_read_back_from_its_json(seed: int) -> None:
    given = schema(Random(seed))
    found = from_spark_json(to_spark_json(given))
    assert found.equals(given, check_metadata=True)


def test_what_spark_knows_of_a_column_besides_its_type_is_passed_over() -> None:
    document = json.loads(to_spark_json(parse_ddl("id BIGINT")))
    document["fields"][0] |= {
        "nullable": False,
        "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"},
    }
    assert from_spark_json(document) == parse_ddl("id BIGINT")


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[]",
        '"long"',
        '{"type": "array", "elementType": "long", "containsNull": true}',
        '{"type": "struct"}',
        '{"type": "struct", "fields": [{"name": "a", "type": "variant"}]}',
        '{"type": "struct", "fields": [{"name": "a", "type": {"type": "udt"}}]}',
        _COLLATED,
        '{"type": "struct", "fields": [{"name": "a", "type": "decimal(99,0)"}]}',
        '{"type": "struct", "fields": [{"type": "long"}]}',
        '{"type": "struct", "fields": [{"name": "a", "type": ["long"]}]}',
    ],
)
def test_json_of_other_schemas_is_refused(document: str) -> None:
    with pytest.raises(ValueError, match=r"not a|its type|collation|Expecting|precision"):
        from_spark_json(document)


@pytest.mark.parametrize(
    ("one", "two", "superset"),
    [
        ("a INT", "b STRING", "a INT, b STRING"),
        ("a TINYINT, b FLOAT", "b DOUBLE, a BIGINT", "a BIGINT, b DOUBLE"),
        ("a DECIMAL(5,2)", "a DECIMAL(10,4)", "a DECIMAL(10,4)"),
        ("a DECIMAL(38,0)", "a DECIMAL(38,0)", "a DECIMAL(38,0)"),
        ("a DECIMAL(20,0)", "a DECIMAL(20,18)", "a DECIMAL(38,18)"),
        ("a VOID", "a ARRAY<VOID>", "a ARRAY<VOID>"),
        ("a ARRAY<INT>", "a ARRAY<VOID>", "a ARRAY<INT>"),
        (
            "a STRUCT<x: INT>, m MAP<INT, SMALLINT>",
            "a STRUCT<y: DATE, x: BIGINT>, m MAP<BIGINT, INT>",
            "a STRUCT<x: BIGINT, y: DATE>, m MAP<BIGINT, INT>",
        ),
    ],
)
def test_a_superset_loses_nothing(one: str, two: str, superset: str) -> None:
    assert merged(parse_ddl(one), parse_ddl(two)) == parse_ddl(superset)


@pytest.mark.parametrize(
    ("one", "two", "clash"),
    [
        ("a INT", "a STRING", "column a: int and string"),
        ("a INT", "a DOUBLE", "column a: int and double"),
        ("a DATE", "a TIMESTAMP", "column a: date and timestamp"),
        ("a TIMESTAMP", "a TIMESTAMP_NTZ", "column a: timestamp and timestamp_ntz"),
        ("a DECIMAL(38,0)", "a DECIMAL(38,10)", "column a: decimal(38,0) and decimal(38,10)"),
        ("a ARRAY<STRUCT<x: INT>>", "a ARRAY<STRUCT<x: DATE>>", "column a.element.x: int and date"),
        ("a MAP<INT, INT>", "a MAP<STRING, INT>", "column a.key: int and string"),
        ("a INT", "A INT", "column A: int named a and int named A"),
        ("a INT, A INT", "b INT", "column A: int named a and int named A"),
        ("a INT", "a STRUCT<x: INT>", "column a: int and struct<x:int>"),
    ],
)
def test_types_without_a_superset_are_named(one: str, two: str, clash: str) -> None:
    with pytest.raises(SchemaClash) as refused:
        merged(parse_ddl(one), parse_ddl(two))
    assert str(refused.value) == clash


@pytest.mark.parametrize("seed", range(50))
def test_the_superset_of_a_schema_and_itself_is_that_schema(seed: int) -> None:
    given = schema(Random(seed))
    assert merged(given, given).equals(given, check_metadata=True)
    assert merged(pa.schema([]), given).equals(given, check_metadata=True)


def test_a_name_is_shown_beside_the_one_that_differs_in_case() -> None:
    assert near("ID", ["name", "id"]) == "ID (beside id)"
    assert near("id", ["name", "id"]) == "id"
    assert simple(pa.schema([])) == "struct<>"
