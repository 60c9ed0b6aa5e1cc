"""What one run comes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.scale.account import Invocation
from tests.scale.services import FUNCTIONS, Services
from tests.scale.workflow import NOWHERE, Walked


@dataclass(slots=True)
class Figures:
    """One run.

    Attributes:
        sampled: partitions that were really worked on.
        requests: as the sample tells them, by kind and by what they are about.
        invocations, seconds: by function; the seconds that are paid.
        longest: seconds of the longest invocation of each function.
        payloads: bytes of the largest state, by where.
        list_bytes: of the item list.
        items: batches of partitions that are worked on, each by a child execution.
        wall: seconds of each phase.
        memory: peak in MB, by function.
    """

    title: str
    partitions: int
    objects: int
    sampled: int
    services: Services
    requests: dict[str, float] = field(default_factory=dict)
    invocations: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    longest: dict[str, float] = field(default_factory=dict)
    payloads: dict[str, int] = field(default_factory=dict)
    list_bytes: int = 0
    parent: Walked = NOWHERE
    child: Walked = NOWHERE
    items: int = 0
    wall: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)

    def add(self, one: Invocation, times: float = 1.0) -> None:
        """So many invocations like this one."""
        name = one.function.name
        for kind, number in one.used.requests.items():
            self.requests[kind] = self.requests.get(kind, 0.0) + number * times
        self.invocations[name] = self.invocations.get(name, 0.0) + times
        self.seconds[name] = self.seconds.get(name, 0.0) + one.seconds * times
        self.longest[name] = max(self.longest.get(name, 0.0), one.seconds)
        self.payloads[name] = max(self.payloads.get(name, 0), one.payload_bytes)

    def started(self, name: str, processes: int) -> None:
        """So many processes were started for a function, which is paid as well."""
        start = self.services.functions.start_seconds
        self.seconds[name] = self.seconds.get(name, 0.0) + processes * start
        self.longest[name] = self.longest.get(name, 0.0) + start

    def of_kind(self, kind: str) -> int:
        """Requests that are paid as this kind."""
        return round(sum(n for name, n in self.requests.items() if name.split()[0] == kind))

    @property
    def source_gets(self) -> int:
        """Bodies that are read."""
        return round(self.requests.get("GET source", 0.0))

    @property
    def wall_seconds(self) -> float:
        """From the begin of the run to its report, each partition with S3's rates for itself."""
        return sum(self.wall.values())

    @property
    def wall_unsplit_seconds(self) -> float:
        """The same where S3 serves all of the bucket at the rate of one prefix."""
        least = self.source_gets / self.services.s3.gets_per_second
        return self.wall_seconds - self.wall["compact"] + max(self.wall["compact"], least)

    def dollars(self) -> dict[str, float]:
        """What it costs, by what for."""
        prices = self.services.prices
        parts = {"GET of sources": self.source_gets * prices.get}
        for kind in ("LIST", "PUT"):
            parts[f"{kind} requests"] = self.of_kind(kind) * prices.request(kind)
        others = self.of_kind("GET") - self.source_gets + self.of_kind("HEAD")
        parts["other GET and HEAD"] = others * prices.get
        parts["Lambda"] = sum(self._of_functions())
        transitions = self.parent.transitions + self.items * self.child.transitions
        parts["Step Functions"] = transitions * prices.transition
        return parts

    def _of_functions(self) -> Iterator[float]:
        prices = self.services.prices
        for name, seconds in self.seconds.items():
            yield seconds * FUNCTIONS[name].memory_mb / 1024 * prices.gb_second
            yield self.invocations[name] * prices.invocation

    @property
    def total_dollars(self) -> float:
        """All of it."""
        return sum(self.dollars().values())
