"""The product runs over sources in one partition, and readers judge what is there afterwards.

The law: readers see in each output what they see in the sources that its commit names, and every
source that no commit names was left alone for a stated reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import escape
from itertools import islice
from typing import Any

from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from tests.support.examples import NOW, PARTITION
from tests.support.world import World
from tests.zoo.encodings import ENCODINGS, decoded
from tests.zoo.kinds import JOINED, SOURCES_EACH, Kind
from tests.zoo.readers import BOM, Reader, Records, json_lines, json_stream, lines

_A_DAY = 86_400
_SHOWN_RECORDS = 3
# Skips that the commits record, or of objects without a byte.
_ELSEWHERE = ("already_committed", "quarantined", "empty")


@dataclass(frozen=True)
class Source:
    """One source of a trial.

    Attributes:
        name: last segment of its key.
        plain: its bytes before compression.
        reader: what its users see in it.
        kind: what it is, for messages.
        declared: its entry in ``formats``, without the pattern.
        encoding: how it is stored, a key of :data:`~tests.zoo.encodings.ENCODINGS`.
        loose: the reader of an object that it shares with sources of another reader.
    """

    name: str
    plain: bytes
    reader: Reader
    kind: str
    declared: Mapping[str, Any] | None = None
    encoding: str = "plain"
    loose: Reader | None = None

    @property
    def stored(self) -> bytes:
        """Its bytes in the store."""
        return ENCODINGS[self.encoding].encode(self.plain)


@dataclass
class Outcome:
    """What became of the sources.

    Attributes:
        joined: names of the sources that share their output with another.
        reasons: why the others were left alone, by name.
        skipped: how many were never read, by the plan's reason.
        faults: what is wrong, in words.
    """

    joined: set[str] = field(default_factory=set)
    reasons: dict[str, tuple[str, str]] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @property
    def became(self) -> str:
        """What became of them, in the words of :attr:`Kind.expected`."""
        reasons = sorted({reason for reason, _ in self.reasons.values()} | {*self.skipped})
        return ", ".join([*([JOINED] if self.joined else []), *reasons])


def sources_of(kind: Kind, encoding: str = "plain", seed: int = 0) -> list[Source]:
    """The sources of a kind, with keys as its producer names them."""
    ending = kind.ending + ENCODINGS[encoding].ending
    return [
        Source(
            f"{n:03}{ending}",
            kind.source(n, seed),
            kind.reader,
            kind.name,
            kind.declared,
            encoding,
            kind.loose,
        )
        for n in range(SOURCES_EACH)
    ]


def judged(kind: Kind, encoding: str = "plain", seed: int = 0) -> Outcome:
    """The sources of one kind in a partition of their own, with what is expected of them."""
    outcome = tried(sources_of(kind, encoding, seed))
    expected, became = set(kind.expected.split(", ")), set(outcome.became.split(", "))
    # Random bytes are refused for one reason or another.
    right = became <= expected and (JOINED in became) == (JOINED in expected)
    if not right and not ENCODINGS[encoding].damaged:
        details = next(iter(outcome.reasons.values()), "")
        outcome.faults.append(f"{kind.expected} expected, and became {outcome.became} {details}")
    return outcome


def tried(sources: Sequence[Source]) -> Outcome:
    """The product runs over these sources, in one partition, with their declarations."""
    formats = [
        {"match": f"*/{escape(source.name)}", **source.declared}
        for source in sources
        if source.declared is not None
    ]
    world = World(formats=formats)
    world.store.add_bucket("source")
    for source in sources:
        key = PARTITION.prefix + source.name
        world.store.seed("source", key, source.stored, last_modified=NOW - _A_DAY)
    outcome = Outcome()
    try:
        receipt = world.run()
    except Exception as error:
        outcome.faults.append(f"the run ended with {type(error).__name__}: {error}")
        return outcome
    outcome.skipped = {
        str(reason): skip.objects
        for reason, skip in receipt.skipped.items()
        if reason not in _ELSEWHERE
    }
    if receipt.status != "done":
        outcome.faults.append(f"the run ended as {receipt.status}")
    commits = list(CommitLog(world.store, world.settings, PARTITION).every_commit())
    outputs = world.store.contents("lake", "compacted/")
    _check(outputs, commits, {source.name: source for source in sources}, outcome)
    return outcome


def _check(
    outputs: dict[str, bytes],
    commits: Iterable[Commit],
    by_name: Mapping[str, Source],
    outcome: Outcome,
) -> None:
    commits_of: Counter[str] = Counter()
    for commit in commits:
        members = [by_name[_name(row.source.key)] for row in commit.rows]
        commits_of.update(member.name for member in members)
        body = outputs.pop(commit.output.key, None) if commit.output is not None else b""
        members = [member for member in members if member.plain not in {b"", BOM}]
        outcome.faults += _wrong_output(body, members, outcome)
        for row in commit.quarantined:
            name = _name(row.source.key)
            commits_of[name] += name not in outcome.reasons
            outcome.reasons[name] = (str(row.reason), row.detail)
    outcome.faults += [f"output {key} is of no commit" for key in outputs]
    outcome.faults += _unaccounted(by_name, commits_of, outcome)


def _unaccounted(
    by_name: Mapping[str, Source], commits_of: Mapping[str, int], outcome: Outcome
) -> Iterator[str]:
    skipped = sum(outcome.skipped.values())
    for name, source in by_name.items():
        if commits_of.get(name, 0) > 1:
            yield f"{source.kind}: {name} is in {commits_of[name]} commits"
        if not commits_of.get(name) and source.stored:
            skipped -= 1
            if skipped < 0:
                yield f"{source.kind}: {name} is in no output and was not left alone for a reason"
    for name, (reason, detail) in outcome.reasons.items():
        if not reason or not detail:
            yield f"{by_name[name].kind}: {name} was left alone, and nothing says why"


def _wrong_output(body: bytes | None, members: Sequence[Source], outcome: Outcome) -> list[str]:
    if body is None:
        return ["an output is missing"]
    try:
        plain = decoded(body)
    except Exception as error:
        return [f"an output is damaged: {error!r}"]
    if not members:
        return [f"an output of nothing has {plain[:40]!r}"] if plain else []
    if len(members) == 1:
        return [] if plain == members[0].plain else _differences(plain, members)
    outcome.joined.update(member.name for member in members)
    return _differences(plain, members)


def _differences(plain: bytes, members: Sequence[Source]) -> list[str]:
    readers = _readers(members)
    faults = [_difference(plain, members, reader) for reader in readers]
    if readers == [lines] and not _in_order(plain, members):
        faults.append("the lines of its sources stand in another order")
    if readers == [json_stream] and len(members) > 1:
        # Joined values are promised on lines, whatever stood between them.
        glued = [record for record in json_lines(plain) if record[0] == "raw"]
        faults += [f"a line of joined JSON is not one value: {glued[0]!r:.120}"] if glued else []
    return [fault for fault in faults if fault]


def _in_order(plain: bytes, members: Sequence[Source]) -> bool:
    sources = [member.plain.removeprefix(BOM).splitlines() for member in members]
    return plain.removeprefix(BOM).splitlines() == [line for each in sources for line in each]


def _readers(members: Sequence[Source]) -> list[Reader]:
    strict = list(dict.fromkeys(member.reader for member in members))
    if len(strict) == 1:
        return strict
    if set(strict) == {json_lines, json_stream}:
        return [json_stream]
    return list(dict.fromkeys(member.loose or member.reader for member in members))


def _difference(plain: bytes, members: Sequence[Source], reader: Reader) -> str:
    expected: Records = Counter()
    for member in members:
        expected.update(reader(member.plain))
    records = reader(plain)
    if records == expected:
        return ""
    kinds = ", ".join(dict.fromkeys(member.kind for member in members))
    return (
        f"{kinds}: {getattr(reader, '__name__', reader)} sees {records.total()} records in an"
        f" output of {len(members)} sources with {expected.total()};"
        f" {_shown(expected - records, 'gone')}; {_shown(records - expected, 'new')}"
    )


def _shown(records: Records, what: str) -> str:
    some = [repr(record)[:120] for record in islice(records.elements(), _SHOWN_RECORDS)]
    return f"{records.total()} {what}" + (f" such as {'; '.join(some)}" if some else "")


def _name(key: str) -> str:
    return key.removeprefix(PARTITION.prefix)
