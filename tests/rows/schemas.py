"""Schemas with every type of outputs, at any depth, from a seed."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from compactor.rows.schema import TIMESTAMP, TIMESTAMP_NTZ, list_of

_SIMPLE = (
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
    pa.string(), pa.binary(), pa.date32(), TIMESTAMP, TIMESTAMP_NTZ, pa.decimal128(38, 10),
    pa.decimal128(1, 1), pa.null(),
)  # fmt: skip
_NAMES = ("id", "a b", "a.b", "é", "日本", 'quote"d', "tick`", "_x", "1", "Ω", "\t", "😀")


def schema(random: Random) -> pa.Schema:
    return pa.schema(_fields(random, 3))


def _fields(random: Random, depth: int) -> list[pa.Field]:
    return [
        pa.field(name, _type(random, depth)) for name in random.sample(_NAMES, random.randint(1, 5))
    ]


def _type(random: Random, depth: int) -> pa.DataType:
    nested = random.randrange(6) if depth else -1
    if nested == 0:
        return pa.struct(_fields(random, depth - 1))
    if nested == 1:
        return list_of(_type(random, depth - 1))
    if nested == 2:
        return pa.map_(random.choice(_SIMPLE[:-1]), _type(random, depth - 1))
    return random.choice(_SIMPLE)
