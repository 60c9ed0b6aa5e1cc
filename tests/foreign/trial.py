"""Data sets go through the product, and foreign readers judge the outputs.

Several data sets share a partition, each under a declaration of its own. The law: what a reader
sees in an output is what is true of exactly those sources that the commit names for it, one after
the other; what contradicts its declaration is left alone, and nothing else is.
"""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from compactor.log.log import CommitLog
from tests.foreign.data_sets import BOM, DataSet, Form, Record, Source, drawn_set
from tests.foreign.readers import DuckDb, Records, by_pandas, by_python
from tests.support.examples import PARTITION
from tests.support.world import World

_SHOWN = 6
# DuckDB reads the outputs of a batch together.
_BATCH = 400
_SHOWN_CHARACTERS = 300


@dataclass
class Tally:
    """What became of the data sets of one kind.

    Attributes:
        sets, sources: how many there were.
        groups: outputs of two or more sources.
        joined, alone: sources in such outputs; and those with an output to themselves.
        refused: sources that were left alone because they contradict their declaration.
        wrong: what must not be.
        unread: times that a reader misreads an output as it misreads one of its sources.
        shown: some of what is wrong, in words.
    """

    sets: int = 0
    sources: int = 0
    groups: int = 0
    joined: int = 0
    alone: int = 0
    refused: int = 0
    wrong: int = 0
    unread: int = 0
    shown: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        self.shown = self.shown[:_SHOWN]

    def fault(self, text: str) -> None:
        """Count something that must not be."""
        self.wrong += 1
        self.shown.append(text[:_SHOWN_CHARACTERS])


@dataclass(frozen=True)
class Output:
    """One output, with the sources that its commit names for it."""

    data_set: DataSet
    body: bytes
    sources: tuple[Source, ...]
    records: int | None

    @property
    def truth(self) -> Records:
        """The records of its sources, in the order of the commit."""
        return [record for source in self.sources for record in source.records]


@dataclass(frozen=True)
class Fate:
    """What became of one data set.

    Attributes:
        outputs: of it.
        refused: reason and detail of the sources that were left alone, by their number.
        faults: what is wrong with the commits, in words.
    """

    outputs: list[Output] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def fate_of(each: DataSet) -> Fate:
    """Run the product over a data set, in a partition of its own."""
    declared = [{"match": f"*{each.ending}*", **each.declared}] if each.declared else []
    world = World(formats=declared)
    world.store.add_bucket("source")
    sources: dict[str, int] = {}
    for number, source in enumerate(each.sources):
        name = f"{number:03}{each.ending}" + ".gz" * each.packed
        sources[PARTITION.prefix + name] = number
        world.put(name, source.body, packed=each.packed)
    fate = Fate()
    receipt = world.run()
    if receipt.status != "done":
        fate.faults.append(f"the run ended as {receipt.status}")
    outputs = world.store.contents("lake", "compacted/")
    commits_of: Counter[int] = Counter()
    for commit in CommitLog(world.store, world.settings, PARTITION).every_commit():
        numbers = [sources[row.source.key] for row in commit.rows]
        refused = {
            sources[row.source.key]: f"{row.reason}: {row.detail}" for row in commit.quarantined
        }
        fate.refused.update(refused)
        commits_of.update([*numbers, *refused])
        members = tuple(each.sources[number] for number in numbers)
        # Sources without a byte are committed with others or without an output.
        members = tuple(source for source in members if source.body.removeprefix(BOM))
        if commit.output is not None and members:
            body = outputs.pop(commit.output.key, b"")
            body = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
            fate.outputs.append(Output(each, body, members, commit.output.records))
    for number, source in enumerate(each.sources):
        if commits_of[number] != 1 and source.body:
            fate.faults.append(f"source {number} is in {commits_of[number]} commits")
    fate.faults.extend(f"no commit names {key}" for key in outputs if outputs[key])
    return fate


def judged(sets: Sequence[DataSet], duck: DuckDb) -> dict[str, Tally]:
    """Run the product over data sets and read what it published; a tally of each kind."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    outputs: list[tuple[str, Output]] = []
    for number, each in enumerate(sets):
        fate = fate_of(each)
        tally = tallies[each.kind]
        tally.sets += 1
        tally.sources += len(each.sources)
        for fault in [*fate.faults, *_misjudged(each, fate)]:
            tally.fault(f"{each.kind}: {fault}")
        for output in fate.outputs:
            several = len(output.sources) > 1
            tally.groups += several
            tally.joined += len(output.sources) * several
            tally.alone += not several
        tally.refused += len(fate.refused)
        outputs += [(f"{number}-{at}", output) for at, output in enumerate(fate.outputs)]
    objects = {
        name: (output.body, _output_form(output), _width(output.sources))
        for name, output in outputs
    }
    by_duck = duck.read(objects)
    for name, output in outputs:
        _judge(output, by_duck[name], duck, tallies[output.data_set.kind])
    return dict(tallies)


def _misjudged(each: DataSet, fate: Fate) -> Iterator[str]:
    """Sources that were refused wrongly, or should have been, and outputs that are too many."""
    for at, source in enumerate(each.sources):
        if source.refused and at not in fate.refused and source.body.removeprefix(BOM):
            yield f"source {at} has {source.refused}, and was taken: {source.body[-80:]!r}"
        if at in fate.refused and not source.refused:
            yield f"source {at} was refused: {fate.refused[at]}: {source.body[:80]!r}"
    taken = [
        source for source in each.sources if not source.refused and source.body.removeprefix(BOM)
    ]
    groups = {source.group for source in taken}
    if len(fate.outputs) != len(groups):
        yield f"{len(fate.outputs)} outputs of {len(groups)} groups"


def _output_form(output: Output) -> Form:
    form = output.data_set.output_form
    if form.format != "csv":
        return form
    ends = {source.group[-1] for source in output.sources}
    return Form(**{**vars(form), "end": str(ends.pop())})


def _width(sources: Sequence[Source]) -> int:
    first = next((source.header or source.records[0] for source in sources
                  if source.header or source.records), ())  # fmt: skip
    return max(len(first), 1)


def _judge(output: Output, by_duck: Records | str, duck: DuckDb, tally: Tally) -> None:
    form, truth = _output_form(output), output.truth
    fault = _by_python(output, form, truth)
    if fault:
        tally.fault(f"{output.data_set.kind}: Python: {fault}")
        return
    if output.records not in {None, len(truth)}:
        tally.fault(f"{output.data_set.kind}: {output.records} records of {len(truth)} counted")
    if by_duck != truth:
        read = partial(_duck_alone, duck)
        _unlike("DuckDB", by_duck, read, output, form, tally)
    if form.format == "csv":
        by_panda = by_pandas(output.body, form, _width(output.sources))
        if by_panda != truth:
            _unlike("pandas", by_panda, by_pandas, output, form, tally)


def _duck_alone(duck: DuckDb, body: bytes, form: Form, width: int) -> Records | str:
    return duck.read({"it": (body, form, width)})["it"]


def _unlike(reader, records, read, output: Output, form: Form, tally: Tally) -> None:
    """A reader misreads an output: only if it reads each of its sources is that our fault."""
    width = _width(output.sources)
    for source in output.sources:
        if read(source.body, form, width) != [*source.records]:
            tally.unread += 1
            return
    tally.fault(f"{output.data_set.kind}: {reader}: {difference(records, output.truth)}")


def _by_python(output: Output, form: Form, truth: Records) -> str:
    headers = {source.header for source in output.sources}
    if len(headers) > 1:
        return f"sources with {len(headers)} headers: {headers}"
    try:
        header, records = by_python(output.body, form)
    except Exception as error:
        return repr(error)
    if header != output.sources[0].header:
        return f"its header is {header}, and that of its sources {output.sources[0].header}"
    return "" if records == truth else difference(records, truth)


def difference(records: Records | str, truth: Sequence[Record]) -> str:
    """How records differ from the truth, in words."""
    if isinstance(records, str):
        return records
    gone, new = Counter(truth) - Counter(records), Counter(records) - Counter(truth)
    some = f"{gone.total()} records of {len(truth)} are gone, {new.total()} are new"
    return f"{some}: {list(gone)[:2]}; {list(new)[:2]}"


def right(groups: int, seed: int, part: tuple[int, int]) -> dict[str, Tally]:
    """Every so-and-so-many-th batch of data sets, until so many groups are joined."""
    duck, total = DuckDb(), dict[str, Tally]()
    first, step = part
    for batch in count(first, step):
        sets = [drawn_set(seed, number) for number in range(batch * _BATCH, (batch + 1) * _BATCH)]
        for kind, tally in judged(sets, duck).items():
            total.setdefault(kind, Tally()).add(tally)
        if sum(tally.groups for tally in total.values()) >= groups:
            return total
    raise AssertionError("there is always another batch")


def table(tallies: dict[str, Tally]) -> str:
    """A row a kind, in the order of their names, and the sum."""
    names = ("sets", "groups", "sources", "joined", "alone", "refused", "wrong", "unread")
    every = Tally()
    for tally in tallies.values():
        every.add(tally)
    lines = [f"{'kind':56}" + "".join(f"{name:>9}" for name in names)]
    for kind, tally in [*sorted(tallies.items()), ("all", every)]:
        lines.append(f"{kind:56}" + "".join(f"{getattr(tally, name):>9,}" for name in names))
    return "\n".join(lines) + "\n"
