"""Spark's reader and the row engine give each value the same answer, but for the listed rules.

Where they differ, a rule of the second table of docs/parquet.md has to say so.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it

from compactor.encoding.row_digest import RowDigest
from compactor.rows.csv_rows import CsvRows
from compactor.rows.ddl import parse_ddl
from compactor.rows.infer import Inferred
from compactor.rows.json_rows import Converted, JsonRows
from compactor.rows.records import Block, Kind
from compactor.rows.schema import from_spark_json, list_of, simple
from tests.spark.reader_values import CSV_FIELDS, JSON_VALUES

REJECTED = "rejected"
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    # Parsing only the requested columns would miss errors in the others.
    "spark.sql.optimizer.enableJsonExpressionOptimization": "false",
    "spark.sql.optimizer.enableCsvExpressionOptimization": "false",
    "spark.sql.csv.parser.columnPruning.enabled": "false",
}
CORRUPT = "__corrupt"
# By default Spark would drop the time of day from values of a DATE column.
USUAL = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT,
    "dateFormat": "yyyy-MM-dd",
}
OF_CSV = {**USUAL, "sep": ",", "quote": '"', "escape": '"', "maxCharsPerColumn": "-1"}
SCALARS = [
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)",
    "DECIMAL(38,0)", "DECIMAL(38,38)", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ",
]  # fmt: skip
NESTED = [
    "ARRAY<INT>", "ARRAY<STRING>", "STRUCT<x: INT>", "STRUCT<x: INT, y: STRING>",
    "MAP<STRING, INT>", "ARRAY<STRUCT<x: INT>>", "STRUCT<x: ARRAY<DOUBLE>>",
]  # fmt: skip


class Rule(NamedTuple):
    """Which differences a rule explains.

    Attributes:
        columns: pattern of the types of columns.
        values: pattern of the values as written.
        here: whether this program takes the value.
        spark: whether Spark does.
    """

    columns: str
    values: str
    here: bool
    spark: bool


FRACTION = r"[0-9](\.[0-9]+)?([eE][+-]?[0-9]+)?"
RULES = {
    "a whole number that a floating-point column would round is rejected": Rule(
        "FLOAT|DOUBLE", r"-?[0-9]+", here=False, spark=True
    ),
    "a number beyond the range of its column is rejected": Rule(
        "TINYINT|FLOAT|DOUBLE", r"-?[0-9.]+([eE][+-]?[0-9]+)?", here=False, spark=True
    ),
    "a number that becomes text keeps its digits": Rule(
        ".*STRING.*", rf".*{FRACTION}.*", here=True, spark=True
    ),
    "a number may have more than 1,000 digits": Rule(
        ".*", r"[0-9.]{1002,}", here=True, spark=False
    ),
    "a comma in a DECIMAL is rejected": Rule("DECIMAL.*", '"1,000"', here=False, spark=True),
    "a number of CSV has neither white space nor a suffix": Rule(
        "FLOAT|DOUBLE", r" 1|1 |[0-9.]+[fd]|0x1p3", here=False, spark=True
    ),
    "half a surrogate pair is rejected": Rule(
        ".*(STRING|STRUCT).*", r".*\\ud[89ac].*", here=False, spark=True
    ),
    "an object that has a name twice, and becomes text or a map, is rejected": Rule(
        ".*(STRING|MAP).*", r'.*("\w+"):.*\1:.*', here=False, spark=True
    ),
    "of a name that occurs twice in a struct, only the last value has to fit": Rule(
        "STRUCT.*", r'.*("\w+"):.*\1:.*', here=True, spark=False
    ),
    "a field that a struct lacks is rejected": Rule(".*STRUCT.*", r".*{.*", here=False, spark=True),
    "text of more than 200 levels of arrays and objects is rejected": Rule(
        ".*STRING.*", r"(\[|{\"y\":){201}.*", here=False, spark=True
    ),
    "text in single quotes is no JSON": Rule(".*STRING.*", ".*'.*", here=False, spark=True),
    "BINARY is base64 without other characters": Rule("BINARY", '".*"', here=False, spark=True),
    "years are 1 to 9999": Rule(
        "DATE|TIMESTAMP.*",
        r'"?([+-].*|0000-.*|[0-9]{5,}-.*|-?[0-9]{12,}|[0-9]{5})"?',
        here=False,
        spark=True,
    ),
    "a timestamp has a whole date, and minutes if it has a time": Rule(
        "TIMESTAMP.*",
        r'"?([0-9]{4}(-[0-9]{2})?|[0-9-]+T[0-9]{2}|T?[0-9]{2}:[0-9:]+|.*\.)"?',
        here=False,
        spark=True,
    ),
    "white space around a timestamp is rejected": Rule(
        "TIMESTAMP.*", r'"? .*|.* "?', here=False, spark=True
    ),
    "a zone is Z, UTC, GMT or an offset of hours and minutes": Rule(
        "TIMESTAMP", r'.*:[0-9]{2} ?([+A-Z].*)"?', here=False, spark=True
    ),
    "a time with a zone needs no seconds": Rule(
        "TIMESTAMP", r'.*T[0-9]{2}:[0-9]{2}(Z|[+-].*)"?', here=True, spark=False
    ),
    "an empty field in quotes is empty text": Rule("STRING", '""', here=True, spark=True),
}


class Answer(NamedTuple):
    """What a value becomes in a column; None if its record is rejected."""

    column: pa.ChunkedArray | None

    @property
    def hash(self) -> str:
        if self.column is None:
            return REJECTED
        found = RowDigest()
        found.add(pa.table([self.column], ["a"]))
        return found.hash

    @property
    def shown(self) -> str:
        """As docs/parquet.md has it."""
        if self.column is None:
            return REJECTED
        (value,) = self.column
        if not value.is_valid:
            return "null"
        if pa.types.is_nested(value.type):
            return json.dumps(value.as_py())
        return str(value.cast(pa.string())).replace("\0", r"\0")


@pytest.fixture(scope="module")
def spark(spark_session: SparkSession) -> SparkSession:
    own = spark_session.newSession()
    for name, value in SETTINGS.items():
        own.conf.set(name, value)
    return own


def by_spark(
    spark: SparkSession, texts: Sequence[str], column: str, parse: Callable[[], Column]
) -> list[Answer]:
    rows = spark.createDataFrame(list(enumerate(texts)), "number INT, text STRING").coalesce(1)
    parsed = rows.select("number", parse().alias("row")).orderBy("number")
    found = parsed.select(
        F.col("row.a").alias("a"), F.col(f"row.{CORRUPT}").isNotNull().alias("refused")
    ).toArrow()
    kind = parse_ddl(f"a {column}").field("a").type
    values = found["a"].cast(kind)
    refused = found["refused"].to_pylist()
    return [Answer(None if refused[n] else values.slice(n, 1)) for n in range(len(texts))]


def json_by_spark(spark: SparkSession, values: Sequence[str], column: str) -> list[Answer]:
    asked = f"a {column}, {CORRUPT} STRING"
    texts = [f'{{"a":{one}}}' for one in values]
    return by_spark(spark, texts, column, lambda: F.from_json("text", asked, USUAL))


def csv_by_spark(spark: SparkSession, values: Sequence[str], column: str) -> list[Answer]:
    asked = f"k STRING, a {column}, {CORRUPT} STRING"
    texts = [f"k,{one}" for one in values]
    return by_spark(spark, texts, column, lambda: F.from_csv("text", asked, OF_CSV))


def json_here(values: Sequence[str], column: str) -> list[Answer]:
    rows = JsonRows(parse_ddl(f"a {column}"))
    return [answered(rows.convert([f'{{"a":{one}}}'.encode()])) for one in values]


def csv_here(values: Sequence[str], column: str) -> list[Answer]:
    rows = CsvRows(Kind("csv", ("k", "a")), parse_ddl(f"k STRING, a {column}"))
    return [answered(rows.convert([f"k,{one}".encode()])) for one in values]


def answered(found: Converted) -> Answer:
    return Answer(None if found.misfits else found.table["a"])


def explained(column: str, value: str, here: Answer, spark: Answer) -> set[str]:
    """The rules that explain a difference."""
    return {
        name
        for name, rule in RULES.items()
        if rule.here == (here.column is not None)
        and rule.spark == (spark.column is not None)
        and re.fullmatch(rule.columns, column)
        and re.fullmatch(rule.values, value, re.DOTALL)
    }


def unexplained(
    column: str, values: Sequence[str], here: Sequence[Answer], spark: Sequence[Answer]
) -> list[str]:
    return [
        f"{column}: {value[:60]} is {mine.shown[:60]} here, {other.shown[:60]} with Spark"
        for value, mine, other in zip(values, here, spark, strict=True)
        if mine.hash != other.hash and not explained(column, value, mine, other)
    ]


@pytest.mark.parametrize("column", [*SCALARS, *NESTED])
def test_json_values_are_those_of_spark(spark: SparkSession, column: str) -> None:
    here, there = json_here(JSON_VALUES, column), json_by_spark(spark, JSON_VALUES, column)
    assert unexplained(column, JSON_VALUES, here, there) == []
    assert any(one.column is not None for one in here)


@pytest.mark.parametrize("column", SCALARS)
def test_csv_fields_are_those_of_spark(spark: SparkSession, column: str) -> None:
    here, there = csv_here(CSV_FIELDS, column), csv_by_spark(spark, CSV_FIELDS, column)
    assert unexplained(column, CSV_FIELDS, here, there) == []
    assert any(one.column is not None for one in here)


# The document.

DOCUMENT = Path(__file__).parents[2] / "docs" / "parquet.md"


def rows_of_document(columns: int) -> list[list[str]]:
    found = []
    for line in DOCUMENT.read_text().splitlines():
        cells = [one.strip() for one in line.strip("|").split(" | ")]
        if len(cells) == columns and {"JSON", "CSV"} & set(cells):
            found.append([expanded(one) for one in cells])
    return found


def expanded(cell: str) -> str:
    """A cell as it is meant: without quotes, and what stands for many characters."""
    if cell == "`0.1`{1,000 zeros}":
        return "0.1" + "0" * 1_000
    if cell == "`[[`{600 levels}`]]`":
        return "[" * 600 + "]" * 600
    return cell.removeprefix("`").removesuffix("`")


def answers(spark: SparkSession, origin: str, value: str, column: str) -> tuple[Answer, Answer]:
    if origin == "JSON":
        return json_here([value], column)[0], json_by_spark(spark, [value], column)[0]
    return csv_here([value], column)[0], csv_by_spark(spark, [value], column)[0]


def test_the_document_says_what_values_become(spark: SparkSession) -> None:
    rows = rows_of_document(4)
    assert len(rows) > 30
    for origin, value, column, becomes in rows:
        here, there = answers(spark, origin, value, column)
        assert (value, column, here.shown) == (value, column, becomes)
        assert here.hash == there.hash, f"{value} in {column}: {there.shown} with Spark"


def test_the_document_lists_each_rule_with_a_value(spark: SparkSession) -> None:
    rows = rows_of_document(6)
    assert [rule for rule, *_ in rows] == list(RULES)
    for rule, origin, value, column, becomes, otherwise in rows:
        here, there = answers(spark, origin, value, column)
        shown = "text" if there.shown.startswith("[[[") else there.shown
        assert (rule, here.shown, shown) == (rule, becomes, otherwise)
        assert rule in explained(column, value, here, there)


# Whole records.

RECORD = """
    `a.b` BIGINT, `x y` STRING, id INT, ID DOUBLE, `tick``s` BOOLEAN, `é` DECIMAL(12,3),
    at TIMESTAMP, day DATE, tags ARRAY<STRING>,
    deep STRUCT<x: INT, `y.z`: ARRAY<STRUCT<w: DOUBLE>>>, pairs MAP<STRING, BIGINT>,
    raw BINARY, f FLOAT
"""
# Of each, what both take, and what both reject.
FITTING = {
    "a.b": ["1", "-9223372036854775808"], "x y": ['"a"', '""', "true", "7", '"\\n"'],
    "id": ["1", "-2147483648"], "ID": ["0.5", "1e3", "-0.0", '"NaN"', "7"],
    "tick`s": ["true", "false"], "é": ["1.0005", "-3", '"2.5"'],
    "at": ['"2026-01-02T03:04:05.123456Z"', '"2026-01-02"', "0", '"2026-01-02 03:04:05+05:30"'],
    "day": ['"2026-02-28"'], "tags": ["[]", '["a",null,""]', "[1]"],
    "deep": ["{}", '{"x":1}', '{"y.z":[{"w":1.5},null,{}]}', '{"x":null,"y.z":[]}'],
    "pairs": ["{}", '{"a":1,"b":null}'], "raw": ['"YWI="'], "f": ["0.1", "1e-3"],
}  # fmt: skip
MISFITS = {
    "a.b": ["1.0", '"1"', "9223372036854775808"], "id": ["2147483648", "{}"], "ID": ['"1.5"', "[]"],
    "tick`s": ['"true"', "0"], "é": ["1e12", '"a"'], "at": ['"yesterday"', "1.5", "{}"],
    "day": ['"2026-02-30"', '"2026-01-02T00:00:00Z"', "1"], "tags": ['"a"', "{}"],
    "deep": ["[]", '{"x":"a"}', '{"y.z":[1]}'], "pairs": ['{"a":"b"}', "[]"], "raw": ["1"],
    "f": ['"x"'],
}  # fmt: skip


def generated(count: int) -> Iterator[str]:
    chance = random.Random(32)
    for _ in range(count):
        names = chance.sample([*FITTING], chance.randint(0, len(FITTING)))
        texts = {name: chance.choice([*FITTING[name], "null"]) for name in names}
        if names and chance.random() < 0.3:
            name = chance.choice([one for one in names if one in MISFITS] or ["id"])
            texts[name] = chance.choice(MISFITS[name])
        yield "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in texts.items()) + "}"


def test_generated_records_become_the_rows_of_spark(spark: SparkSession) -> None:
    schema = parse_ddl(RECORD)
    records = [*generated(1_500)]
    frame = spark.createDataFrame(list(enumerate(records)), "number INT, text STRING").coalesce(1)
    row = F.from_json("text", f"{RECORD}, {CORRUPT} STRING", USUAL).alias("row")
    read = frame.select("number", row).orderBy("number").select("row.*").toArrow()
    refused = [one is not None for one in read[CORRUPT].to_pylist()]
    assert 200 < sum(refused) < 800
    fitting = read.drop_columns([CORRUPT]).filter(pa.array([not one for one in refused]))
    found = JsonRows(schema).convert([one.encode() for one in records])
    assert [number in found.misfits for number in range(len(records))] == refused
    assert digest(fitting.cast(schema)) == digest(found.table)


def digest(table: pa.Table) -> str:
    found = RowDigest()
    found.add(table)
    return found.hash


def records_of(chance: random.Random) -> list[str]:
    """Some records with values of all kinds."""
    values = chance.sample(SAMPLED, 4)

    def record() -> str:
        names = chance.sample(["a", "b", "a.b"], chance.randint(0, 3))
        return ", ".join(f'"{name}": {chance.choice(values)}' for name in names)

    return [f"{{{record()}}}" for _ in range(chance.randint(1, 4))]


SAMPLED = [
    "1", "-1", "1.5", "1e3", "9223372036854775807", "9223372036854775808", "9" * 38, "9" * 39,
    "null", "true", '"a"', '"1"', '"2026-01-02T03:04:05Z"', "[]", "[null]", "[1]", "[1.5]", '["a"]',
    "[[1]]", "[[]]", '{"x":1}', '{"x":null}', '{"x":"a"}', '{"y":[{"z":1}]}', '[{"x":1}]',
    '[{"x":"a","y":{"z":null}}]', "[true]", "[9223372036854775808]", "0.1",
    "0.10000000000000000001", "[9007199254740993]", f'{{"x":{"9" * 39}}}',
]  # fmt: skip


def without_rounding(kind: pa.DataType, values: Sequence[Any]) -> pa.DataType:
    """The type that Spark inferred, with text for each double that would round a value."""
    present = [value for value in values if value is not None]
    if pa.types.is_float64(kind):
        return pa.string() if any(is_rounded(value) for value in present) else kind
    if pa.types.is_list(kind):
        return list_of(without_rounding(kind.value_type, [*itertools.chain(*present)]))
    if pa.types.is_struct(kind):
        return pa.struct(
            [
                pa.field(
                    member.name,
                    without_rounding(member.type, [v.get(member.name) for v in present]),
                )
                for member in kind
            ]
        )
    return kind


def is_rounded(value: int | Decimal) -> bool:
    if isinstance(value, int):
        return int(float(value)) != value
    return Decimal(repr(float(value))) != value


def test_columns_inferred_from_json_are_those_of_spark_or_text(spark: SparkSession) -> None:
    chance = random.Random(5)
    texts = 0
    for _ in range(120):
        records = records_of(chance)
        lines = spark.sparkContext.parallelize(records, 1)
        read = spark.read.options(mode="PERMISSIVE").json(lines).schema
        found = Inferred()
        found.add(Block(Kind("json"), 0, [one.encode() for one in records]))
        here = found.columns(pa.schema([]))
        by_spark = from_spark_json(read.json())
        values = [json.loads(record, parse_float=Decimal) for record in records]
        wanted = without_rounding(pa.struct([*by_spark]), values)
        assert (records, simple(pa.struct([*here]))) == (records, simple(wanted))
        texts += simple(wanted) != simple(pa.struct([*by_spark]))
    assert texts >= 10
