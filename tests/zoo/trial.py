"""The product runs over sources in one partition, and readers judge what is there afterwards.

The law: what readers see in all outputs together with the sources that were left alone is what
they see in all sources. It is checked for each output against the sources that its commit names,
and bytes of those alone; every source that no commit names must have a reason that is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from tests.support.examples import NOW, PARTITION
from tests.support.world import World
from tests.zoo.encodings import ENCODINGS, decoded
from tests.zoo.engines import difference
from tests.zoo.kinds import Kind, Verdict
from tests.zoo.readers import BOM, Reader, Records, json_lines, json_stream, lines

_A_DAY = 86_400
_SHOWN_RECORDS = 3
# Skips that are told in the commits, or of objects without a byte.
_KNOWN_OTHERWISE = ("already_committed", "quarantined", "empty")


@dataclass(frozen=True)
class Source:
    """One source of a trial.

    Attributes:
        name: last segment of its key.
        plain: its bytes before compression.
        reader: what its users see in it.
        kind: what it is, for messages.
        encoding: how it is stored, a key of :data:`~tests.zoo.encodings.ENCODINGS`.
        loose: the reader where it shares an object with sources of another reader.
    """

    name: str
    plain: bytes
    reader: Reader
    kind: str
    encoding: str = "plain"
    loose: Reader | None = None

    @property
    def stored(self) -> bytes:
        """Its bytes in the store."""
        return ENCODINGS[self.encoding].encode(self.plain)

    @property
    def empty(self) -> bool:
        """It has no content that anybody could see."""
        return self.plain in (b"", BOM)


@dataclass
class Outcome:
    """What became of the sources.

    Attributes:
        joined: names of the sources that share their output with another one.
        alone: names of those that have an output to themselves.
        left: reason and detail of those left alone, by name.
        outputs: how many there are.
        passed_over: how many were never looked at, by the reason that the plan gives.
        faults: what is wrong, in words.
    """

    joined: set[str] = field(default_factory=set)
    alone: set[str] = field(default_factory=set)
    left: dict[str, tuple[str, str]] = field(default_factory=dict)
    outputs: int = 0
    passed_over: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @property
    def decided(self) -> str:
        """In one word, or a few."""
        left = self.left or self.passed_over
        parts = {"joined": self.joined, "alone in its output": self.alone, "left alone": left}
        return " and ".join(name for name, some in parts.items() if some) or "nothing to do"

    @property
    def reasons(self) -> str:
        """Why sources were left alone."""
        return ", ".join(sorted({reason for reason, _ in self.left.values()} | {*self.passed_over}))


def sources_of(kind: Kind, encoding: str = "plain", seed: int = 0) -> list[Source]:
    """The sources of a kind, with keys as its producer gives them."""
    ending = kind.ending + ENCODINGS[encoding].ending
    return [
        Source(f"{n:03}{ending}", plain, kind.reader, kind.name, encoding, kind.loose)
        for n, plain in enumerate(kind.sources(seed))
    ]


def judged(kind: Kind, encoding: str = "plain", seed: int = 0) -> Outcome:
    """The sources of one kind in a partition of their own, its verdict included."""
    sources = sources_of(kind, encoding, seed)
    outcome = tried(sources, **kind.given)
    if kind.verdict is Verdict.JOINED and not ENCODINGS[encoding].damaged:
        outcome.faults += _not_joined(sources, outcome)
    if kind.verdict is Verdict.LEFT and outcome.joined:
        outcome.faults.append(f"must be left alone, and {sorted(outcome.joined)} were joined")
    return outcome


def _not_joined(sources: Sequence[Source], outcome: Outcome) -> Iterator[str]:
    if outcome.left:
        yield f"must be joined, and {len(outcome.left)} of {len(sources)} were left alone: " + str(
            next(iter(outcome.left.values()))
        )
    elif outcome.outputs >= len(sources) > 1:
        yield f"must be joined, and has {outcome.outputs} outputs of {len(sources)} sources"


def tried(sources: Iterable[Source], **given: object) -> Outcome:
    """The product runs over these sources, in one partition and with these settings."""
    by_name = {one.name: one for one in sources}
    try:
        world = World(**given)
    except Exception as error:
        return Outcome(faults=[f"the settings are refused: {error}"])
    world.store.add_bucket("source")
    for one in by_name.values():
        key = PARTITION.prefix + one.name
        world.store.seed("source", key, one.stored, last_modified=NOW - _A_DAY)
    outcome = Outcome()
    try:
        receipt = world.run()
    except Exception as error:
        outcome.faults.append(f"the run ended with {type(error).__name__}: {error}")
    else:
        outcome.passed_over = {
            str(reason): some.objects
            for reason, some in receipt.skipped.items()
            if reason not in _KNOWN_OTHERWISE
        }
        if receipt.status != "done":
            outcome.faults.append(f"the run ended as {receipt.status}")
    log = CommitLog(world.store, world.settings, PARTITION)
    commits = list(log.every_commit())
    _look(world.store.contents("lake", "compacted/"), commits, by_name, outcome)
    return outcome


def _look(
    outputs: Mapping[str, bytes],
    commits: Sequence[Commit],
    by_name: Mapping[str, Source],
    outcome: Outcome,
) -> None:
    outcome.outputs = len(outputs)
    named: Counter[str] = Counter()
    unclaimed = dict(outputs)
    for commit in commits:
        members = [by_name[_name(row.source.key)] for row in commit.rows]
        named.update(one.name for one in members)
        body = unclaimed.pop(commit.output.key, None) if commit.output is not None else b""
        outcome.faults += _wrong_output(body, [one for one in members if not one.empty], outcome)
        for left in commit.quarantined:
            name = _name(left.source.key)
            # It may wait for its data set, and be looked at again.
            named[name] += name not in outcome.left
            outcome.left[name] = (str(left.reason), left.detail)
    outcome.faults += [f"output {key} is of no commit" for key in unclaimed]
    outcome.faults += _unaccounted(by_name, named, outcome)


def _unaccounted(
    by_name: Mapping[str, Source], named: Mapping[str, int], outcome: Outcome
) -> Iterator[str]:
    passed_over = sum(outcome.passed_over.values())
    for name, source in by_name.items():
        if named.get(name, 0) > 1:
            yield f"{source.kind}: {name} is in {named[name]} commits"
        if not named.get(name) and source.stored:
            passed_over -= 1
            if passed_over < 0:
                yield f"{source.kind}: {name} is in no output and was not left alone for a reason"
    for name, (reason, detail) in outcome.left.items():
        if not reason or not detail:
            yield f"{by_name[name].kind}: {name} was left alone, and nothing says why"


def _wrong_output(body: bytes | None, members: Sequence[Source], outcome: Outcome) -> list[str]:
    """What is wrong with one output."""
    if body is None:
        return ["an output is missing"]
    try:
        plain = decoded(body)
    except Exception as error:
        return [f"an output is damaged: {error!r}"]
    if not members:
        return [f"an output of nothing holds {plain[:40]!r}"] if plain else []
    if len(members) == 1:
        outcome.alone.add(members[0].name)
        if plain == members[0].plain:
            return []
    else:
        outcome.joined.update(one.name for one in members)
    readers = _readers(members)
    wrong = [_difference(plain, members, reader) for reader in readers]
    if len(members) > 1 and len(readers) == 1:
        wrong += _of_several(plain, members, readers[0])
    return [text for text in wrong if text]


def _not_on_lines(plain: bytes) -> Iterator[str]:
    """Joined values are promised one to a line, whatever stood between them before."""
    glued = [one for one in json_lines(plain) if one[0] == "raw"]
    if glued:
        yield f"a line of joined JSON is not one value: {glued[0]!r:.120}"


def _of_several(plain: bytes, members: Sequence[Source], reader: Reader) -> Iterator[str]:
    """What the reader alone does not see in an output of several sources of its kind."""
    if reader is lines and not _in_order(plain, members):
        yield "the lines of its sources stand in another order"
    if reader is json_stream:
        yield from _not_on_lines(plain)
    yield difference(plain, [one.plain for one in members], reader)


def _in_order(plain: bytes, members: Sequence[Source]) -> bool:
    """Its lines are those of one source after the other."""
    sources = [one.plain.removeprefix(BOM).splitlines() for one in members]
    return plain.removeprefix(BOM).splitlines() == [line for some in sources for line in some]


def _readers(members: Sequence[Source]) -> list[Reader]:
    strict = list(dict.fromkeys(one.reader for one in members))
    if len(strict) == 1:
        return strict
    if set(strict) == {json_lines, json_stream}:
        # What is glued on one line is read value by value, and what is not is that as well.
        return [json_stream]
    return list(dict.fromkeys(one.loose or one.reader for one in members))


def _difference(plain: bytes, members: Sequence[Source], reader: Reader) -> str:
    expected: Records = Counter()
    for one in members:
        expected.update(reader(one.plain))
    seen = reader(plain)
    if seen == expected:
        return ""
    kinds = ", ".join(dict.fromkeys(one.kind for one in members))
    return (
        f"{kinds}: {getattr(reader, '__name__', reader)} sees {seen.total()} records in an output"
        f" of {len(members)} sources with {expected.total()}; {_shown(expected - seen, 'gone')};"
        f" {_shown(seen - expected, 'new')}"
    )


def _shown(records: Records, what: str) -> str:
    some = [repr(one)[:120] for one in islice(records.elements(), _SHOWN_RECORDS)]
    return f"{records.total()} {what}" + (f" such as {'; '.join(some)}" if some else "")


def _name(key: str) -> str:
    return key.removeprefix(PARTITION.prefix)
