"""Which runs write rows, where their partitions go, and which sources share an output."""

from __future__ import annotations

from typing import Any

import pytest

from compactor.discovery.discover import discover
from compactor.errors import InvalidInput
from compactor.model import SkipReason
from compactor.planning.packing import make_group, pack
from compactor.planning.plan import Knowledge, plan
from compactor.sizes import MIB
from tests.support.examples import NOW, listing, settings, source
from tests.support.memory_store import ManualClock, MemoryStore

COLUMNAR: list[dict[str, Any]] = [{"format": "parquet"}, {"output_format": "parquet"}]


@pytest.mark.parametrize("given", COLUMNAR)
def test_workers_take_the_partitions_of_a_run_that_writes_rows(given: dict[str, Any]) -> None:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    store.seed("source", "logs/a/1.parquet", b"one")
    store.seed("source", "logs/b/2.parquet", b"two")
    found = discover(settings(depth=1, **given), store, NOW)
    assert [one.path for one in found.partitions] == ["a/", "b/"]


@pytest.mark.parametrize("given", COLUMNAR)
def test_what_query_engines_pass_over_is_left_alone(given: dict[str, Any]) -> None:
    names = ("_temporary/0001.parquet", ".hidden.parquet", "k/_SUCCESS", "k/a_b.c")
    decision = plan(listing(*map(source, names)), settings(**given), Knowledge(), NOW)
    assert decision.skipped[SkipReason.HIDDEN].objects == 3
    ((left,),) = [group.sources for group in decision.groups]
    assert left.key.endswith("k/a_b.c")


def test_small_parquet_objects_share_outputs_of_the_target_and_large_ones_are_copied() -> None:
    sources = [source(f"{n:03d}.snappy.parquet", size=30 * MIB) for n in range(9)]
    sources.append(source("large.parquet", size=70 * MIB))
    packed = [*pack(sources, settings(format="parquet"), {})]
    assert [(len(one.group.sources), one.group.copy) for one in packed] == [
        (4, False),
        (4, False),
        (1, True),
        (1, False),
    ]


def test_parquet_objects_are_packed_together_whatever_their_names() -> None:
    sources = [source(name, size=MIB) for name in ("a.gz", "b.csv", "c", "d.zst.parquet")]
    assert len([*pack(sources, settings(format="parquet"), {})]) == 1


def test_another_compression_rewrites_large_parquet_objects_too() -> None:
    packed = pack([source("a", 200 * MIB)], settings(format="parquet", compression="zstd"), {})
    assert [one.group.copy for one in packed] == [False]


def test_records_that_become_rows_are_never_copied() -> None:
    packed = pack([source("a.json", 4096 * MIB)], settings(output_format="parquet"), {})
    assert [one.group.copy for one in packed] == [False]


def test_groups_of_rows_have_ids_of_their_own() -> None:
    sources = [source("a.json")]
    ids = {
        make_group(sources, settings(**given)).id
        for given in (
            {},
            {"output_format": "parquet"},
            {"output_format": "parquet", "parquet_schema": "id INT"},
            {"format": "parquet"},
        )
    }
    assert len(ids) == 4


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"output_format": "orc"}, "output_format: 'orc' is not accepted"),
        (
            {
                "output_format": "parquet",
                "formats": [{"format": "csv", "header": True, "encoding": "single_byte"}],
            },
            "formats: {'format': 'csv', 'header': True, 'encoding': 'single_byte'} is not accepted",
        ),
        ({"parquet_schema": "id INT"}, "parquet_schema: 'id INT' is not accepted"),
        ({"format": "parquet", "parquet_schema": "id INT"}, "parquet_schema: 'id INT' is not"),
        (
            {"output_format": "parquet", "parquet_schema": " "},
            "parquet_schema: ' ' is not accepted",
        ),
        ({"output_format": "parquet", "parquet_schema": 7}, "parquet_schema: 7 is not accepted"),
    ],
)
def test_fields_that_contradict_each_other_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        settings(**given)
    assert str(refused.value).startswith(told)


def test_a_given_schema_is_kept_without_the_blanks_around_it() -> None:
    wanted = settings(output_format="parquet", parquet_schema=" id INT\n")
    assert wanted.parquet_schema == "id INT"
    assert wanted.columnar
    assert not settings().columnar
