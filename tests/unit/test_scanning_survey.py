"""A survey estimates how many keys there are, and where, from a few pages of them."""

from __future__ import annotations

import uuid
from itertools import pairwise
from random import Random

import pytest

from compactor.scanning.survey import survey
from tests.support.memory_store import MemoryStore

SPREADS = {
    "numbers": [f"{n:05}" for n in range(9_000)],
    "UUIDs": [str(uuid.UUID(int=Random(n).getrandbits(128))) for n in range(9_000)],
    "times": [
        f"{day:02}/{n // 60:02}:{n % 60:02}:{second:02}Z"
        for day in range(1, 4)
        for n in range(24 * 60)
        for second in (1, 30)
    ],
}


@pytest.mark.parametrize("names", SPREADS.values(), ids=SPREADS)
def test_cuts_leave_no_range_with_more_than_four_times_its_share(names: list[str]) -> None:
    store = MemoryStore(page_size=200)
    keys = sorted(f"logs/{one}" for one in names)
    for key in keys:
        store.seed("source", key, b"x")

    def behind(key: str):
        return next(store.list_objects("source", "logs/", start_after=key), ())

    surveyed = survey(behind, keys[500])
    assert store.count("list_objects", bucket="source") <= 40
    left = len(keys) - 501
    assert left / 200 / 3 <= surveyed.pages <= 3 * left / 200
    cuts = surveyed.cuts(32)
    assert len(cuts) == 31
    pairs = pairwise([keys[500], *cuts, "\U0010ffff"])
    sizes = [sum(since < key <= until for key in keys) for since, until in pairs]
    assert sum(sizes) == left
    assert max(sizes) <= 4 * left / 32
