"""The runs that are simulated, each by a sample of its partitions.

All partitions of a run are alike, so what one takes is what each takes; the first batch of them is
counted by itself, for it writes the marker of the state as well. The receipts that the report
reads, and the logs that clean-up looks through, are copies of those of the sample. Discovery finds
all partitions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from compactor.discovery.work_list import to_items_json
from compactor.limits import USUAL
from tests.scale import workflow
from tests.scale.account import Account, Invocation, account
from tests.scale.figures import Figures
from tests.scale.fleet import side_by_side
from tests.scale.keys import LAKE_BUCKET, ROOT, SOURCE_BUCKET, Keys
from tests.scale.meter import Asked, Used
from tests.scale.services import Services
from tests.scale.wire import Stored

STATE = "_compactor/compacted/"
_COPIES = 2_000
# Of PartitionRun.reserve_seconds.
RESERVE_SECONDS = 30.0
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Case:
    """Partitions, and the runs over them, one a day.

    Attributes:
        sampled: partitions that are really worked on.
        share: of a partition only one object in so many is really there.
        runs: title of each run, and the objects that each partition has got since the run before.
        given: of the run's input, beside the places.
    """

    partitions: int
    objects: int
    sampled: int
    runs: Sequence[tuple[str, int]]
    given: dict[str, Any] = field(default_factory=dict)
    share: int = 1

    @property
    def input(self) -> dict[str, Any]:
        """The run's input."""
        places = {
            "s3_source_uri": f"s3://{SOURCE_BUCKET}/{ROOT}",
            "s3_destination_uri": f"s3://{LAKE_BUCKET}/compacted/",
        }
        return {**places, "depth": 1, "max_concurrency": 1_000, "delete_after": "30d", **self.given}


# What sends a partition to Spark, out of the way.
_BY_LAMBDA = {"engine": "worker"}
CASES = (
    Case(
        10_000,
        10_000,
        20,
        (
            ("10,000 x 10,000, first run", 0),
            ("the second run, 1 % new", 100),
            ("the third, nothing new", 0),
        ),
    ),
    Case(1, 10_000_000, 1, (("one of 10,000,000, first run", 0),), _BY_LAMBDA, 100),
    Case(100_000, 10, 80, (("100,000 x 10, first run", 0),)),
)


def simulated(case: Case, services: Services) -> Iterator[Figures]:
    """The figures of each run."""
    keys = Keys(case.sampled, case.objects // case.share)
    with account(keys, services) as here:
        fresh = 0
        for number, (title, new) in enumerate(case.runs):
            fresh += new
            here.wire.keys, here.wire.whole = replace(keys, fresh=fresh), None
            run = _Run(case, here, title, f"run-{number + 1}")
            yield run.carry_out()
            here.at += _DAY


class _Run:
    """One run."""

    def __init__(self, case: Case, here: Account, title: str, run_id: str) -> None:
        self._case = case
        self._here = here
        self._run_id = run_id
        self._items: list[dict[str, Any]] = []
        objects, fresh = here.wire.keys.objects * case.share, here.wire.keys.fresh * case.share
        self._whole = Keys(case.partitions, objects, fresh)
        self._figures = Figures(
            title, case.partitions, self._whole.total, case.sampled, here.services
        )

    def carry_out(self) -> Figures:
        """As the state machine does."""
        found = self._discover()
        self._compact(found)
        self._plan_clean_up(found)
        self._report(found)
        return self._figures

    def _discover(self) -> dict[str, Any]:
        """What is found of all partitions; the sample is the first of them."""
        event = {"input": self._case.input, "run_id": self._run_id, "started_at": "2026-01-04"}
        self._here.wire.whole = self._whole
        one = self._here.call("discover", event)
        self._figures.add(one)
        self._add_wall("discover", one.seconds)
        self._figures.started("discover", 1)
        self._add_wall("discover", self._here.services.functions.start_seconds)
        self._figures.parent = workflow.parent()
        stored = self._here.wire.stored[one.answer["items"]["key"]]
        self._figures.list_bytes = len(stored.body)
        self._items = json.loads(stored.body)[: self._case.sampled]
        assert one.answer["item_count"] == self._whole.partitions, "discovery found others"
        return one.answer

    def _add_wall(self, phase: str, seconds: float) -> None:
        self._figures.wall[phase] = self._figures.wall.get(phase, 0.0) + seconds

    def _compact(self, found: dict[str, Any]) -> None:
        """Every partition of the sample, in as large batches as the sample has two of."""
        size = min(found["batch_partitions"], max(1, len(self._items) // 2))
        calls = [
            self._compact_some(found, self._items[at : at + size])
            for at in range(0, len(self._items), size)
        ]
        # A rest that is smaller than a batch is worked on, and stands for none.
        calls = calls[: len(self._items) // size]
        batches = max(1, self._case.partitions // size)
        others = len(calls) - 1
        for number, made in enumerate(calls):
            times = (batches - 1) / others if number else 1.0
            for one in made:
                self._figures.add(one, times)
        seconds = [one.seconds for one in calls[-1]]
        # A sample differs by the noise of the machine; all of them take what they take on average.
        average = self._figures.seconds["compact_partition"] / batches
        seconds = [one * average / sum(seconds) for one in seconds]
        together = side_by_side(batches, seconds, self._here.services, found["max_concurrency"])
        self._figures.wall["compact"] = together.seconds
        self._figures.started("compact_partition", together.most)
        self._figures.items, self._figures.child = batches, workflow.child(len(calls[-1]))

    def _compact_some(
        self, found: dict[str, Any], items: Sequence[dict[str, Any]]
    ) -> list[Invocation]:
        """What one child execution is for."""
        common = {"run_id": self._run_id, "settings": found["settings"]}
        if self._case.share > 1:
            return self._of_a_share({**common, "partition": items[0]})
        state: dict[str, Any] = {"BatchInput": common, "Items": items}
        made: list[Invocation] = []
        while not made or made[-1].answer["status"] == "more":
            made.append(self._here.call("compact_partition", {"batch": state, "attempt": 0}))
            state = made[-1].answer
        assert made[-1].answer["status"] == "done"
        return made

    def _of_a_share(self, event: dict[str, Any]) -> list[Invocation]:
        """The calls for a whole partition, each as long as a worker goes on for."""
        share = self._case.share
        name = "compact_partition"
        one = self._here.call(name, event, share, _lists_a_partition, endless=True)
        groups = max(1, one.answer["counts"]["objects_out"]) * share
        longest = one.seconds / groups
        # As compactor.partition.inputs has it: a group is begun while there is time for 1.5.
        works = min(USUAL.work_seconds, self._here.services.functions.seconds)
        usable = works - RESERVE_SECONDS - 0.5 * longest
        calls = math.ceil(one.seconds / usable)
        rest = one.used
        made = []
        for number in range(calls, 0, -1):
            part = min(1.0, usable / rest.seconds(one.function)) if number > 1 else 1.0
            made.append(replace(one, used=Used().plus(rest, part)))
            rest = rest.plus(made[-1].used, -1.0)
        return made

    def _plan_clean_up(self, found: dict[str, Any]) -> None:
        event = {"run_id": self._run_id, "settings": found["settings"]}
        logs = f"{STATE}partitions/"
        with self._copied(lambda key: key.startswith(logs)) as weight:
            one = self._here.call("plan_clean_up", event, weight, _lists_logs)
        self._figures.add(one)
        self._figures.started("plan_clean_up", 1)
        self._figures.wall["clean-up planned"] = self._figures.seconds["plan_clean_up"]

    def _report(self, found: dict[str, Any]) -> None:
        wired = self._here.wire
        event = {name: found[name] for name in ("run_id", "started_at", "settings")}
        items_key = found["items"]["key"]
        items = wired.stored[items_key]
        receipts = f"{STATE}runs/{self._run_id}/receipts/"
        with self._copied(lambda key: key.startswith(receipts)) as weight:
            count = round(self._case.partitions / weight)
            listed = [self._whole.item(number) for number in range(count)]
            wired.stored[items_key] = Stored.of(to_items_json(listed), wired.now)
            one = self._here.call("report", event, weight, _reads_receipts)
            while one.answer["status"] == "more":
                self._figures.add(one)
                one = self._here.call("report", one.answer, weight, _reads_receipts)
        wired.stored[items_key] = items
        return self._reported(one)

    def _reported(self, one: Invocation) -> None:
        assert one.answer["status"] == "succeeded", one.answer
        self._figures.add(one)
        self._figures.started("report", 1)
        self._figures.wall["report"] = self._figures.seconds["report"]

    @contextmanager
    def _copied(self, wanted: Any) -> Iterator[float]:
        """Give partitions beside the sample what its first one has; tells how often all fit."""
        stored = self._here.wire.stored
        before = dict(stored)
        count = min(self._case.partitions, max(_COPIES, self._case.sampled))
        first = self._whole.item(0)
        own = {key: one for key, one in before.items() if wanted(key)}
        own = {key: one for key, one in own.items() if first.path in key or first.id in key}
        for number in range(self._case.sampled, count):
            other = self._whole.item(number)
            for key, one in own.items():
                name = key.replace(first.path, other.path).replace(first.id, other.id)
                body = one.body.replace(first.path.encode(), other.path.encode())
                stored[name] = Stored.of(body, one.modified) if first.id in key else one
        yield self._case.partitions / count
        for key in set(stored) - set(before):
            if wanted(key):
                del stored[key]


def _lists_a_partition(asked: Asked) -> bool:
    return asked.kind == "LIST" and asked.about == SOURCE_BUCKET and asked.key != ROOT


def _lists_logs(asked: Asked) -> bool:
    return asked.kind == "LIST" and asked.key.endswith("partitions/")


def _reads_receipts(asked: Asked) -> bool:
    return "/receipts/" in asked.key or (asked.kind == "PUT" and asked.key.endswith("report.json"))


__all__ = ["CASES", "Case", "simulated"]
