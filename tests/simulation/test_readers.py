"""Checks that queries read each record once in every schedule, and a removed guard is noticed."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from random import Random

import pytest

from tests.simulation.readers import READER_MUTATIONS, READER_NOTICED, Actors, misread
from tests.support.proof_figures import leave, note_mutation

# 0.05 s each; `make proof` runs all of them, `make test` a sample.
SCHEDULES = 1_000
SAMPLE = 100


def test_every_query_reads_each_record_once_in_every_schedule(proof_directory: Path | None) -> None:
    count = SCHEDULES if proof_directory else SAMPLE
    shown: set[str] = set()
    disturbed: Counter[str] = Counter()
    queries = deleted = dropped = 0
    for seed in range(count):
        actors = Actors(Random(seed))
        actors.play()
        deleted += len(actors.lake.world.records) - len(actors.lake.world.sources())
        shown |= actors.shown
        disturbed += actors.disturbed
        queries += actors.queries
        dropped += actors.dropped
    assert shown == {"raw", "compacted", "listed"}
    assert deleted > count / 5, "schedules in which nothing is ever cleaned up show nothing"
    assert dropped, "nor those in which no list ever goes"
    assert set(disturbed) == {"somebody else meanwhile", "died"}
    if proof_directory:
        figures = {"schedules": count, "requests": queries, "violations": 0}
        leave(proof_directory, "simulation-readers", {**figures, "faults": disturbed})


@pytest.mark.parametrize("name", READER_MUTATIONS)
def test_without_this_guard_a_query_reads_otherwise(
    name: str, monkeypatch: pytest.MonkeyPatch, proof_directory: Path | None
) -> None:
    READER_MUTATIONS[name](monkeypatch)
    known = [] if proof_directory else [READER_NOTICED[name]]
    noticed = misread(chain(known, range(SCHEDULES)))
    assert noticed, "no schedule shows it"
    if proof_directory:
        note_mutation(proof_directory, "readers", name, noticed)
