"""The model of how long a reader takes: what was published, and what holds of any engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.planning.packing import make_group
from compactor.planning.query_seconds import ATHENA, Engine, Stored, outputs_of, seconds, sources_of
from compactor.sizes import GIB, MIB
from tests.support.examples import settings, source

# An engine with threads of its own, each of which asks for HEAD and GET of 27 ms.
TWO = Engine(0.3, 0.054, 2e6, readers=2)
counts = st.integers(1, 10**6)


@pytest.mark.parametrize(
    ("stored", "published"),
    [
        (Stored(2_000, 280_000_000, 2_000), 16.0),
        (Stored(4, 280_000_000, 4), 6.8),
        (Stored(582_000, 83_000_000_000, 582_000), 40.7),
        (Stored(336, 83_000_000_000, 336 * 4), 9.7),
    ],
)
def test_published_seconds_are_given_within_five_per_cent(stored: Stored, published: float) -> None:
    assert seconds(ATHENA, stored) == pytest.approx(published, rel=0.05)


@pytest.mark.parametrize(
    ("engine", "stored", "measured"),
    [
        # DuckDB with its two threads, with 32, and over the outputs; 25 ms to the first byte.
        (TWO, Stored(2_000, 6_000_000, 2_000), 53.0),
        (replace(TWO, readers=32), Stored(2_000, 6_000_000, 2_000), 4.0),
        (TWO, Stored(5, 4_500_000, 5), 1.4),
    ],
)
def test_an_engine_with_few_threads_takes_what_was_measured_within_a_fifth(
    engine: Engine, stored: Stored, measured: float
) -> None:
    assert seconds(engine, stored) == pytest.approx(measured, rel=0.2)


@given(counts, counts, st.integers(1, 1_000))
def test_fewer_objects_never_take_longer_as_long_as_all_readers_share_them(
    objects: int, size: int, readers: int
) -> None:
    engine = replace(TWO, readers=readers)
    many = Stored(objects + readers, size, objects + readers)
    few = Stored(readers, size, readers)
    assert seconds(engine, few) <= seconds(engine, many) + 1e-9


def test_one_object_that_cannot_be_split_may_take_longer_than_many_small_ones() -> None:
    engine = replace(TWO, readers=32)
    whole = 50_000_000
    assert seconds(engine, Stored(1, whole, 1)) > seconds(engine, Stored(500, whole, 500))


def test_what_is_not_there_takes_what_an_engine_takes_to_begin() -> None:
    assert seconds(ATHENA, Stored()) == ATHENA.start_seconds


def test_compressed_outputs_are_one_part_each_and_plain_ones_many() -> None:
    packed = [
        make_group([source(f"{n}{m}.json.gz", 2 * MIB) for m in "ab"], settings()) for n in "xyz"
    ]
    assert sources_of(packed) == Stored(6, 12 * MIB, 6)
    assert outputs_of(packed, settings()) == Stored(3, 12 * MIB, 3)

    def plain(**given: str) -> Stored:
        wanted = settings(**given)
        return outputs_of([make_group([source("a.json", GIB)], wanted)], wanted)

    assert plain() == Stored(1, GIB, 16)
    assert plain(compression="gzip").parts == 1
    assert plain(output_format="parquet").parts == 4
