"""Publishers that die beside Spark, which rewrites and expires: with the real Iceberg and Delta."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.proof_figures import leave
from tests.support.sample import sample
from tests.support.table_engines import Unavailable, engine_settings

pytestmark = pytest.mark.slow
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from tests.spark.table_schedules import (  # noqa: E402 - needs both libraries
    DELTA,
    ICEBERG,
    play_table_schedule,
    session_of_lakes,
)

# `make proof` plays all of them, `make test` some. VACUUM takes Spark a few seconds.
SCHEDULES = {ICEBERG: 25, DELTA: 25}
SAMPLE = {ICEBERG: 2, DELTA: 1}


@pytest.mark.timeout(1_800)
def test_each_row_is_in_the_real_table_once(
    spark_session: SparkSession, tmp_path: Path, proof_directory: Path | None
) -> None:
    try:
        engine_settings()
    except Unavailable as reason:
        pytest.skip(f"no jars of Iceberg and Delta: {reason}")
    counts = SCHEDULES if proof_directory else SAMPLE
    first = 0 if proof_directory else sample() * max(counts.values())
    seeds = range(first, first + max(counts.values()))
    session = session_of_lakes(spark_session, tmp_path, seeds)
    happened: Counter[str] = Counter()
    broken = []
    for kind, count in counts.items():
        for seed in seeds[:count]:
            played = play_table_schedule(kind, session, tmp_path, seed)
            happened += played.happened
            broken += [(kind, seed, played.broken)] if played.broken else []
    assert broken == []
    assert {"data files rewritten", "publisher disturbed: meanwhile"} <= set(happened)
    if proof_directory:
        disturbed = {name: many for name, many in happened.items() if name != "output committed"}
        figures = {"schedules": sum(counts.values()), "faults": disturbed, "violations": 0}
        leave(proof_directory, "spark-tables", figures)
