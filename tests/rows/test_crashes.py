"""Whatever instant a worker with rows dies at: each record is a row once, or kept."""

from __future__ import annotations

import gzip
import io
from collections import Counter
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.errors import InvalidInput
from tests.simulation.processes import without_threads
from tests.support.memory_store import Call, Crashed
from tests.support.world import World, records_in

LINE = '{{"id": "{}"}}'


class RowsWorld(World):
    """Sources of rows; a record that does not fit is found among the dead-letter records."""

    def destination(self) -> Counter[int]:
        found = super().destination()
        for key, body in self.store.contents("lake", self.settings.state.prefix).items():
            if "/dead-letters/" in key and not set(records_in(body)) <= set(found):
                found += records_in(body)
        return found


def converted() -> World:
    made = RowsWorld(output_format="parquet", parquet_schema="id STRING", format="json_lines")
    made.add("a.json", LINE)
    made.add("b.json.gz", LINE, packed=True)
    made.put("c.json", b"")
    made.add("d.json", '{{"id": "{}", "more": 1}}', records=1)
    made.put("e.json.gz", b"\x1f\x8b\x08\x00damaged")
    made.add("f.json", LINE)
    return made


def merged() -> World:
    made = World(format="parquet")
    for number in range(4):
        body = io.BytesIO()
        pq.write_table(pa.table({"id": [f"record-{number}", f"record-{number + 10}"]}), body)
        made.put(f"{number}.parquet", body.getvalue())
        made.records |= {number, number + 10}
    return made


@pytest.fixture(autouse=True)
def one_request_at_a_time() -> Iterator[None]:
    with without_threads():
        yield


def deaths(make: Callable[[], World]) -> Iterator[tuple[Callable[[], World], int, str]]:
    """Each request of a run, and the moments before and after it."""
    made = make()
    succeeded: list[Call] = []
    made.store.hooks.after.append(succeeded.append)
    with without_threads():
        made.run()
    yield from ((make, number, "before") for number in range(1, len(made.store.calls) + 1))
    yield from ((make, number, "after") for number in range(1, len(succeeded) + 1))


DEATHS = [*deaths(converted), *deaths(merged)]


@pytest.mark.parametrize("make", [converted, merged])
def test_a_run_that_nothing_disturbs_is_finished(make: Callable[[], World]) -> None:
    made = make()
    made.store.hooks.after.append(made.check)
    made.run()
    made.must_be_finished()


@pytest.mark.parametrize(("make", "number", "moment"), DEATHS)
def test_a_worker_that_dies_at_any_request_is_made_good_by_the_next(
    make: Callable[[], World], number: int, moment: str
) -> None:
    made = make()
    seen = 0

    def die(call: Call) -> None:
        nonlocal seen
        seen += 1
        if seen >= number:
            raise Crashed(f"{moment} {call}")

    hooks = getattr(made.store.hooks, moment)
    hooks.append(die)
    with pytest.raises(Crashed):
        made.run()
    hooks.remove(die)
    made.check()
    made.store.hooks.after.append(made.check)
    made.run()
    made.must_be_finished()


def test_a_group_whose_rows_no_output_can_hold_stops_no_other_group() -> None:
    made = World(output_format="parquet", parquet_schema="id STRING")
    made.put("0.json.gz", gzip.compress(b'{"other": 1}\n' * 3, mtime=0))
    made.add("a.json", LINE)
    made.add("b.json", LINE)
    with pytest.raises(InvalidInput, match=r"parquet_schema: .* all 3 records of one group"):
        made.run()
    assert set(made.destination()) == made.records
    made.check()
