"""Objects with the columns of the taxi trips that New York City publishes, made up."""

from __future__ import annotations

import datetime
import io
import random
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

#: The number of a trip, which the public data has not: rows are told apart by it.
NUMBER = "trip"
SCHEMA = pa.schema(
    [
        (NUMBER, pa.int64()),
        ("VendorID", pa.int64()),
        ("tpep_pickup_datetime", pa.timestamp("us")),
        ("tpep_dropoff_datetime", pa.timestamp("us")),
        ("passenger_count", pa.float64()),
        ("trip_distance", pa.float64()),
        ("RatecodeID", pa.float64()),
        ("store_and_fwd_flag", pa.string()),
        ("PULocationID", pa.int64()),
        ("DOLocationID", pa.int64()),
        ("payment_type", pa.int64()),
        ("fare_amount", pa.float64()),
        ("tip_amount", pa.float64()),
        ("total_amount", pa.float64()),
    ]
)
_FIRST = datetime.datetime(2026, 1, 1)  # noqa: DTZ001 - the public data has no time zone either


def objects(count: int, rows: int, seed: int = 1) -> Iterator[bytes]:
    """So many Parquet objects of so many rows; trips are numbered through from 0."""
    drawn = random.Random(seed)
    for number in range(count):
        first = number * rows
        table = pa.Table.from_pylist([_trip(drawn, first + one) for one in range(rows)], SCHEMA)
        body = io.BytesIO()
        pq.write_table(table, body)
        yield body.getvalue()


def _trip(drawn: random.Random, number: int) -> dict[str, object]:
    began = _FIRST + datetime.timedelta(seconds=number * 7)
    fare, tip = drawn.randrange(300, 9_000) / 100, drawn.randrange(0, 1_500) / 100
    return {
        NUMBER: number,
        "VendorID": drawn.randrange(1, 3),
        "tpep_pickup_datetime": began,
        "tpep_dropoff_datetime": began + datetime.timedelta(seconds=drawn.randrange(60, 4_000)),
        "passenger_count": float(drawn.randrange(1, 6)),
        "trip_distance": drawn.randrange(1, 3_000) / 100,
        "RatecodeID": 1.0,
        "store_and_fwd_flag": drawn.choice("NY"),
        "PULocationID": drawn.randrange(1, 266),
        "DOLocationID": drawn.randrange(1, 266),
        "payment_type": drawn.randrange(1, 5),
        "fare_amount": fare,
        "tip_amount": tip,
        "total_amount": fare + tip,
    }
