"""What was measured, and what follows from it: medians, spreads, ratios within rounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import median
from typing import Any

from compactor_dev.benchmark.clients import LOOP, SEED
from compactor_dev.benchmark.others import QUIET_SHARE

# What another version left is not read: its figures would be taken for others.
VERSION = 2


@dataclass(frozen=True, slots=True)
class Measurement:
    """One client, once.

    Attributes:
        data_set, client, lane: names.
        round: from 1.
        objects, bytes_in: sources read, and their stored bytes.
        of_objects: objects of the set, of which these were the first.
        outputs, bytes_out: what was left in the data prefix.
        seconds: wall time of the process, its start included.
        user_seconds, kernel_seconds: CPU time of the process and what it started.
        start_seconds, start_user_seconds, start_kernel_seconds: of these, until the client could
            begin; 0.0 where it does not tell. They come once, however many objects follow, so
            that a sample's figures are those of the whole set at the sample's pace.
        peak_bytes: largest resident memory.
        instructions: executed in user space, the start included; None where nobody counts them.
        others: the share of all processors that other processes used meanwhile.
        equal: the outputs hold exactly the records of the sources.
        detail: what the client itself had to say.
    """

    data_set: str
    client: str
    lane: str
    round: int
    objects: int
    of_objects: int
    bytes_in: int
    outputs: int
    bytes_out: int
    seconds: float
    user_seconds: float
    kernel_seconds: float
    start_seconds: float
    start_user_seconds: float
    start_kernel_seconds: float
    peak_bytes: int
    instructions: int | None
    others: float
    equal: bool
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def objects_per_second(self) -> float:
        """Sources a second of wall time."""
        return self.of_objects / self._whole(self.seconds, self.start_seconds)

    @property
    def mb_per_second(self) -> float:
        """Stored source bytes a second, in 10**6."""
        return self.objects_per_second * self.bytes_in / self.objects / 1e6

    @property
    def user_ms_per_object(self) -> float:
        """CPU milliseconds in user space for one source."""
        return self._whole(self.user_seconds, self.start_user_seconds) * 1000 / self.of_objects

    @property
    def kernel_ms_per_object(self) -> float:
        """Likewise, in the kernel."""
        return self._whole(self.kernel_seconds, self.start_kernel_seconds) * 1000 / self.of_objects

    @property
    def cpu_ms_per_object(self) -> float:
        """Both."""
        return self.user_ms_per_object + self.kernel_ms_per_object

    @property
    def instructions_per_object(self) -> float | None:
        """None where nobody counts, and for a sample, of whose start nobody knows them."""
        whole = self.objects == self.of_objects
        return self.instructions / self.objects if whole and self.instructions else None

    def _whole(self, taken: float, start: float) -> float:
        """What the whole set would take."""
        return start + (taken - start) * self.of_objects / self.objects

    @property
    def size_ratio(self) -> float:
        """Stored bytes out for each stored byte in."""
        return self.bytes_out / self.bytes_in


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, smallest and largest of some rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Of at least one value."""
        ordered = sorted(values)
        return cls(median(ordered), ordered[0], ordered[-1])


@dataclass(frozen=True, slots=True)
class Summary:
    """All rounds of one client in one lane; single figures are medians."""

    rounds: int
    sample: int
    cpu_ms_per_object: Spread
    user_ms_per_object: float
    kernel_ms_per_object: float
    instructions_per_object: float | None
    objects_per_second: Spread
    mb_per_second: float
    peak_bytes: int
    size_ratio: float
    equal: bool


def summarise(rounds: Sequence[Measurement]) -> Summary:
    """Of at least one round; memory is that of the worst, equality that of all."""

    def middle(of: Callable[[Measurement], float]) -> float:
        return median(of(one) for one in rounds)

    executed = [one.instructions_per_object for one in rounds]
    counted = [one for one in executed if one is not None]
    return Summary(
        rounds=len(rounds),
        sample=rounds[0].objects,
        cpu_ms_per_object=Spread.of(one.cpu_ms_per_object for one in rounds),
        user_ms_per_object=middle(lambda one: one.user_ms_per_object),
        kernel_ms_per_object=middle(lambda one: one.kernel_ms_per_object),
        instructions_per_object=median(counted) if counted else None,
        objects_per_second=Spread.of(one.objects_per_second for one in rounds),
        mb_per_second=middle(lambda one: one.mb_per_second),
        peak_bytes=max(one.peak_bytes for one in rounds),
        size_ratio=middle(lambda one: one.size_ratio),
        equal=all(one.equal for one in rounds),
    )


@dataclass(frozen=True, slots=True)
class Ratio:
    """What one client has for each unit of another's, in the same rounds.

    Attributes:
        cpu: CPU time an object.
        speed: objects a second.
    """

    cpu: Spread
    speed: Spread


def ratio(ones: Sequence[Measurement], others: Sequence[Measurement]) -> Ratio | None:
    """Formed within each round that both have; None when there is no such round.

    A slow minute of the machine meets both clients of a round, so that what is left of it in
    their ratio is little; in a ratio of medians it may stand whole.
    """
    by_round = {one.round: one for one in others}
    pairs = [(one, by_round[one.round]) for one in ones if one.round in by_round]
    if not pairs:
        return None
    return Ratio(
        cpu=Spread.of(one.cpu_ms_per_object / other.cpu_ms_per_object for one, other in pairs),
        speed=Spread.of(one.objects_per_second / other.objects_per_second for one, other in pairs),
    )


@dataclass(slots=True)
class SetResult:
    """One data set's share of ``build/bench.json``.

    Attributes:
        title: the set, for people.
        objects: how many it has.
        measured_at: ISO 8601, UTC.
        upload_bytes_per_second: what the server takes of a plain multipart upload.
        ceiling: lane -> GETs and bytes a second that the server gives a plain load generator.
    """

    title: str
    objects: int
    measured_at: str
    machine: Mapping[str, str]
    upload_bytes_per_second: float = 0.0
    ceiling: dict[str, Mapping[str, float]] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)

    def rounds(self, client: str, lane: str) -> list[Measurement]:
        """The rounds of one client in one lane."""
        return [one for one in self.measurements if (one.client, one.lane) == (client, lane)]

    def summary(self, client: str, lane: str) -> Summary | None:
        """The same in short; None when there was none."""
        rounds = self.rounds(client, lane)
        return summarise(rounds) if rounds else None

    def ratio(self, client: str, other: str, lane: str) -> Ratio | None:
        """One client beside another, within the rounds of a lane."""
        return ratio(self.rounds(client, lane), self.rounds(other, lane))

    @property
    def disturbed(self) -> list[Measurement]:
        """During which others used more than :data:`QUIET_SHARE` of the processors."""
        return [one for one in self.measurements if one.others > QUIET_SHARE]

    @property
    def lanes(self) -> list[str]:
        """In the order in which they were measured first."""
        return list(dict.fromkeys(one.lane for one in self.measurements))

    @property
    def clients(self) -> list[str]:
        """Likewise."""
        return list(dict.fromkeys(one.client for one in self.measurements))


Results = dict[str, SetResult]


def disturbance(result: SetResult) -> str | None:
    """A sentence on what others used of the processors; None when the set was measured quietly."""
    found = result.disturbed
    if not found:
        return None
    worst = max(found, key=lambda one: one.others)
    return (
        f"Not quiet: in {len(found)} of {len(result.measurements)} measurements others used more"
        f" than {QUIET_SHARE:.0%} of the processors, at most {worst.others:.0%}"
        f" ({worst.client}, {worst.lane}, round {worst.round})."
    )


def to_json(results: Results) -> str:
    """The whole of ``build/bench.json``: every round, and what follows from them."""
    document = {
        "version": VERSION,
        "sets": {name: asdict(result) | _derived(result) for name, result in results.items()},
    }
    return json.dumps(document, indent=1) + "\n"


def _derived(result: SetResult) -> dict[str, Any]:
    summaries = {
        lane: {
            client: asdict(summary)
            for client in result.clients
            if (summary := result.summary(client, lane)) is not None
        }
        for lane in result.lanes
    }
    ratios = {
        lane: {
            client: {
                base: asdict(found)
                for base in (LOOP, SEED)
                if (found := result.ratio(client, base, lane)) is not None
            }
            for client in result.clients
        }
        for lane in result.lanes
    }
    return {"summaries": summaries, "ratios": ratios}


def load(path: Path) -> Results:
    """What an earlier run left; nothing when it left none that this version understands."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["version"] != VERSION:
            return {}
        return {name: _set_result(one) for name, one in document["sets"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _set_result(given: Mapping[str, Any]) -> SetResult:
    known = {one.name: given[one.name] for one in fields(SetResult)}
    known["measurements"] = [Measurement(**one) for one in given["measurements"]]
    return SetResult(**known)
