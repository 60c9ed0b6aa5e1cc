"""Queries beside producers, runs that die, refreshes and clean-ups; a sample of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from compactor_local.embedded import EmbeddedS3, embedded_s3, in_environment
from tests.e2e.query_oracle import Misread
from tests.e2e.querying import QueriedLake
from tests.simulation.readers import with_a_doubled_list, without_waiting
from tests.simulation.wrong_orders import deleting_before_the_switch, switching_before_the_commit

pytestmark = pytest.mark.timeout(1_800)
QUERIES = 40
# With a guard gone the first wrong answer comes long before.
MOST_QUERIES = 400
SEED = 3


@pytest.fixture
def s3() -> Iterator[EmbeddedS3]:
    """One with a Glue beside it, and nobody else's objects in it."""
    with embedded_s3(lake=True) as running, in_environment(running.environment):
        yield running


def test_every_query_reads_what_was_visible_and_no_record_twice(
    s3: EmbeddedS3, tmp_path: Path
) -> None:
    figures = QueriedLake(s3, tmp_path, SEED).play(QUERIES)
    assert figures.queries >= QUERIES
    assert figures.during > 0
    assert figures.acts["killed runs"] > 0
    assert figures.deleted > 0
    assert {"lists", "my-lake"} <= set(figures.shown)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutate",
    [
        without_waiting,
        with_a_doubled_list,
        # As long as a worker may take that is slow, or dies.
        partial(deleting_before_the_switch, between_seconds=0.5),
        partial(switching_before_the_commit, between_seconds=0.5),
    ],
)
def test_without_this_guard_a_query_notices(
    mutate: Callable[[pytest.MonkeyPatch], None],
    s3: EmbeddedS3,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutate(monkeypatch)
    with pytest.raises(Misread):
        QueriedLake(s3, tmp_path, SEED).play(MOST_QUERIES)
