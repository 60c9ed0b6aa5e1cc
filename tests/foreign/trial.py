"""Data sets go through whole runs of the product, and foreign readers judge the outputs.

Many data sets share a run: its wildcard names them, its date format their partitions. All settings
have their defaults. The law: what a reader sees in an output is what it sees, one behind the
other, in exactly those sources that the commit log names for this output.
"""

from __future__ import annotations

import gzip
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from compactor import layout
from compactor.layout import partition_at
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.model import Format
from compactor.orchestration.in_process import ThisProcess
from compactor.orchestration.messages import Desk
from compactor.orchestration.run import Given, run_whole
from compactor.ports import ObjectStore
from compactor.runs import partition_receipts as receipts
from compactor.settings.settings import Settings
from tests.foreign.readers import DuckDb, Rows, Told, by_pandas, by_python, padded
from tests.foreign.tables import DataSet, Expected, Row, Source, have_rows_for_headers
from tests.support.examples import NOW, settings
from tests.support.memory_store import ManualClock, MemoryStore

_A_DAY = 86_400
_BETWEEN_RUNS = 7_200
_FEWEST_BELOW = 3
_ROOT = "logs/"
# The week before the clock of the examples.
_WINDOW = {"date_format": "day=%Y-%m-%d", "duration": "7d"}
DAYS = tuple(f"day=2027-01-{day:02}/" for day in range(8, 15))
_DECIDED = frozenset(("already_committed", "quarantined", "empty"))
_SHOWN = 8
_SHOWN_BYTES = 400


@dataclass
class Tally:
    """What became of the data sets of one kind.

    Attributes:
        sets: how many there were.
        groups: outputs of two or more sources.
        sources: how many there were.
        joined: sources in such outputs.
        alone: sources with an output to themselves.
        empty: sources without a record.
        left: sources left alone, by reason.
        wrong: outputs in which a reader sees other rows than in their sources, and sources gone.
        posed: outputs that would be right if first records were what they look like, headers or
            rows, see :class:`DataSet`; they count as nothing else.
        miscounted: outputs whose commit counts other records than they have.
        unexpected: data sets that had to be joined or left alone, and were not.
        unread: times that a reader misreads an output, as it misreads one of its sources.
        shown: some of what is wrong, in words.
    """

    sets: int = 0
    groups: int = 0
    sources: int = 0
    joined: int = 0
    alone: int = 0
    empty: int = 0
    left: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    posed: int = 0
    miscounted: int = 0
    unexpected: int = 0
    unread: int = 0
    shown: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        for name, value in vars(other).items():
            if name == "shown":
                # What must not be comes first: there may be more than is kept.
                self.shown = sorted(self.shown + value, key=is_allowed)[:_SHOWN]
            elif name == "left":
                self.left.update(value)
            else:
                setattr(self, name, getattr(self, name) + value)


def is_allowed(text: str) -> bool:
    """Whether what is shown is no failure."""
    return text.startswith(("posed", "unread"))


class _Forever:
    def remaining_seconds(self) -> float:
        return math.inf


class Lake:
    """Data sets in a strict store, and the runs over them."""

    def __init__(self, sets: Sequence[DataSet], **given: object) -> None:
        self.clock = ManualClock(NOW)
        self.store = MemoryStore(self.clock)
        self.settings: Settings = settings(
            **{"s3_source_uri": f"s3://source/{_ROOT}*/", **_WINDOW, **given}
        )
        for bucket in ("source", "lake"):
            self.store.add_bucket(bucket)
        self.sets = {one.name or f"set{n:04}": one for n, one in enumerate(sets)}
        self.skipped: dict[str, str] = {}

    def run(self) -> str:
        """As many runs as there are waves; returns what went wrong, or nothing."""
        waves = 1 + max(one.wave for each in self.sets.values() for one in each.sources)
        for wave in range(waves):
            # What comes later is younger than the run before, and has settled.
            now = NOW + wave * _BETWEEN_RUNS
            self.clock.time = now
            self._seed(wave, now - (_BETWEEN_RUNS - 60 if wave else _A_DAY))
            status = self._run(f"run-{wave}")
            if status != "succeeded":
                return f"run {wave} ended as {status}"
        return ""

    def _seed(self, wave: int, last_modified: float) -> None:
        for name, each in self.sets.items():
            for one in each.sources:
                if one.wave == wave:
                    body = gzip.compress(one.body, 1, mtime=0) if _packed(one.path) else one.body
                    key = f"{_ROOT}{name}/{one.path}"
                    self.store.seed("source", key, body, last_modified=last_modified)

    def _run(self, run_id: str) -> str:
        def workers(store: ObjectStore) -> ThisProcess:
            return ThisProcess(Desk(self.settings, store, self.clock, run_id), _Forever())

        ended = run_whole(
            Given(
                settings=self.settings,
                run_id=run_id,
                started_at="2027-01-15T08:00:00Z",
                store=self.store,
                clock=self.clock,
                deadline=_Forever(),
                workers=workers,
            )
        )
        for path in self.partitions():
            self._passed_over(run_id, path)
        return str(ended.report.status) if ended.report else "unfinished"

    def _passed_over(self, run_id: str, path: str) -> None:
        key = layout.receipt_key(self.settings, run_id, partition_at(self.settings, path))
        if self.store.head(*key) is None:
            return
        receipt = receipts.decode(self.store.get(*key))
        reasons = sorted(str(one) for one in receipt.skipped if one not in _DECIDED)
        self.skipped[path] = ", ".join(reasons)

    def partitions(self) -> list[str]:
        """Their paths, those with sources."""
        return sorted(
            {f"{name}/{_day(one.path)}" for name, each in self.sets.items() for one in each.sources}
        )

    def commits(self, path: str) -> list[Commit]:
        """What the log of a partition says, without what a later entry made void."""
        log = CommitLog(self.store, self.settings, partition_at(self.settings, path))
        every = list(log.every_commit())
        void = {one.replaces for one in every}
        return [one for one in every if one.sequence not in void]


@dataclass(frozen=True)
class _Joined:
    """One output of a data set, and the sources that its commit names.

    Attributes:
        records: as the commit counts them.
        table: it was joined as one, not as lines of text.
    """

    each: DataSet
    key: str
    stored: bytes | None
    sources: tuple[Source, ...]
    records: int | None
    table: bool

    @cached_property
    def body(self) -> bytes | None:
        """Its plain bytes."""
        if self.stored is None or not self.stored.startswith(b"\x1f\x8b"):
            return self.stored
        return gzip.decompress(self.stored)

    @cached_property
    def told(self) -> Told:
        """The truth that its readers are told."""
        return _told(self.sources, _ends(self.each.sources) or {"\n"})

    @property
    def headed(self) -> _Joined:
        """The same output of sources whose first rows are headers."""
        return replace(self, sources=tuple(one.headed for one in self.sources))

    @property
    def unheaded(self) -> _Joined:
        """The same output of sources whose headers are rows."""
        return replace(self, sources=tuple(one.unheaded for one in self.sources))

    @property
    def header(self) -> Row:
        """Of its sources, where they have one."""
        return next((one.header for one in self.sources if one.header is not None), ())

    @property
    def rows(self) -> Rows:
        """Of its sources, in the order of the commit."""
        return [row for one in self.sources for row in one.rows]


def _ends(sources: Sequence[Source]) -> set[str]:
    """The line ends that sources show: one line without an end, alone in its source, shows none."""
    return {
        one.form.end
        for one in sources
        if one.first and (one.form.ended or one.form.blank or len(one.rows) > (one.header is None))
    }


def _told(sources: Sequence[Source], usual: Set[str] = frozenset()) -> Told:
    """The truth of some sources.

    Args:
        usual: line ends of their data set, for sources that show none.
    """
    ends = _ends(sources) or usual
    width = max((len(row) for one in sources for row in (*one.rows, one.first) if row), default=1)
    return Told(
        header=any(one.header is not None for one in sources),
        delimiter=sources[0].form.delimiter,
        end="".join(ends) if len(ends) == 1 else "",
        width=max(width, 1),
    )


def judged(sets: Sequence[DataSet], duck: DuckDb, **given: object) -> dict[str, Tally]:
    """Run the product over data sets and read what it published; a tally for each kind."""
    lake = Lake(sets, **given)
    trouble = lake.run()
    tallies = {each.kind: Tally() for each in sets}
    joined: list[_Joined] = []
    unclaimed = set(lake.store.contents("lake", "compacted/"))
    for name, each in lake.sets.items():
        outputs, tally = _OfSet(lake, name, each).found()
        tallies[each.kind].add(tally)
        unclaimed -= {one.key for one in outputs}
        joined += outputs
    for one, found, fault in _faults(joined, duck):
        tally = tallies[one.each.kind]
        sort = "posed" if found != "unread" and _is_posed(one, duck) else found
        setattr(tally, sort, getattr(tally, sort) + 1)
        tally.shown.append(f"{sort}: {one.key}: {fault}")
    if trouble or unclaimed:
        texts = [trouble] * bool(trouble) + [f"no commit names {key}" for key in unclaimed]
        tallies["any"] = Tally(wrong=len(texts), shown=texts)
    return tallies


class _OfSet:
    """What became of one data set, as its commit logs say."""

    def __init__(self, lake: Lake, name: str, each: DataSet) -> None:
        self._lake = lake
        self._each = each
        self._prefix = f"{_ROOT}{name}/"
        self._outputs = f"compacted/{name}/"
        self._by_key = {self._prefix + one.path: one for one in each.sources}
        self._left: dict[str, str] = {}
        self._named: Counter[str] = Counter()
        self._joined: list[_Joined] = []
        self._paths = sorted({f"{name}/{_day(one.path)}" for one in each.sources})

    def found(self) -> tuple[list[_Joined], Tally]:
        """Its outputs, and the tally of its sources."""
        tally = Tally(sets=1, sources=len(self._by_key))
        contents = self._lake.store.contents("lake", self._outputs)
        for path in self._paths:
            for commit in self._lake.commits(path):
                self._take(commit, contents)
        for one in self._joined:
            several = len(one.sources) > 1
            tally.groups += several
            tally.joined += len(one.sources) if several else 0
            tally.alone += not several
        self._account(tally)
        return self._joined, tally

    def _take(self, commit: Commit, contents: Mapping[str, bytes]) -> None:
        self._left |= {one.source.key: str(one.reason) for one in commit.quarantined}
        keys = [row.source.key for row in commit.rows]
        self._named.update(keys)
        if commit.output is not None:
            sources = tuple(self._by_key[key] for key in keys)
            key, records = commit.output.key, commit.output.records
            table = commit.output.format in {Format.CSV, Format.TSV}
            found = _Joined(self._each, key, contents.get(key), sources, records, table)
            self._joined.append(found)

    def _account(self, tally: Tally) -> None:
        """Each source is in one output, or is left alone for a reason, or is empty."""
        for key, one in self._by_key.items():
            times = self._named[key]
            if times > 1:
                tally.wrong += 1
                tally.shown.append(f"wrong: {key} is in {times} outputs")
            if times:
                continue
            reason = self._left.get(key) or self._lake.skipped.get(self._path(one), "")
            if not one.first:
                tally.empty += 1
            elif reason:
                tally.left[reason] += 1
            else:
                tally.wrong += 1
                tally.shown.append(f"wrong: {key} is in no output, and nothing says why")
        self._expect(tally)

    def _expect(self, tally: Tally) -> None:
        wanted = self._each.expected
        left = sum(tally.left.values())
        # What stands below first records shows what they are.
        below = sum(len(one.rows) - (one.header is None) for one in self._each.sources)
        if wanted is Expected.JOINED and left and below >= _FEWEST_BELOW:
            tally.unexpected += 1
            tally.shown.append(f"unexpected: {self._prefix}: {dict(tally.left)} must be joined")
        if wanted is Expected.LEFT and tally.joined:
            tally.unexpected += 1
            tally.shown.append(f"unexpected: {self._prefix}: {tally.joined} must be left alone")

    def _path(self, one: Source) -> str:
        return self._prefix.removeprefix(_ROOT) + _day(one.path)


def _faults(joined: Sequence[_Joined], duck: DuckDb) -> Iterator[tuple[_Joined, str, str]]:
    """What is wrong with outputs: which counter it belongs to, and in words."""
    by_duck = duck.rows({one.key: (one.body, one.told) for one in joined if one.body is not None})
    for one in joined:
        if one.body is None:
            yield one, "wrong", "the output is missing"
            continue
        expected = padded(one.rows, one.told.width)
        fault = _by_python(one, expected)
        if fault:
            yield one, "wrong", f"Python: {fault}"
            continue
        blank = sum(each.blank for each in one.sources)
        if one.table and one.records not in {None, len(expected), len(expected) + blank}:
            yield one, "miscounted", f"{one.records} records are said of {len(expected)}"
        for reader, read in (("DuckDB", duck.one), ("pandas", _pandas)):
            rows = by_duck[one.key] if reader == "DuckDB" else _pandas(one.body, one.told)
            # Lines of text may end in several ways, which DuckDB does not read.
            if rows == expected or (reader == "DuckDB" and not one.table):
                continue
            sort = "wrong" if all(_reads(read, each) for each in one.sources) else "unread"
            yield one, sort, f"{reader}: {_difference(rows, expected)}"
            if sort == "wrong":
                break


def _is_posed(one: _Joined, duck: DuckDb) -> bool:
    """Whether all that is wrong is that no reader could tell first rows from a header."""
    if not one.table and have_rows_for_headers(one.sources):
        taken = one.unheaded
    elif all(each.shape in one.each.posed for each in one.sources if each.first):
        taken = one.headed
    else:
        return False
    return all(sort == "unread" for _, sort, _ in _faults([taken], duck))


def _by_python(one: _Joined, expected: Rows) -> str:
    try:
        header, rows = by_python(one.body or b"", one.told)
    except Exception as error:
        return repr(error)
    headers = {each.header for each in one.sources if each.header is not None}
    if len(headers) > 1:
        return f"sources with {len(headers)} headers: {sorted(headers)[:2]}"
    if header != one.header:
        return f"its header is {header}, and that of its sources {one.header}"
    rows = padded(rows, one.told.width)
    return "" if rows == expected else _difference(rows, expected)


def _pandas(body: bytes, told: Told) -> Rows | str:
    try:
        return by_pandas(body, told)
    except Exception as error:
        return repr(error)


def _reads(read: Callable[[bytes, Told], Rows | str], source: Source) -> bool:
    """The reader reads this source as it is, also where its first row is not the widest.

    pandas takes more fields than the header has from the first row below it, and from no other.
    """
    rows = (*([source.header] if source.header else []), *source.rows)
    told = _told([source])
    return all(
        read(each.body, told) == padded(each.rows, told.width)
        for each in (source, replace(source, rows=rows))
    )


def _difference(rows: Rows | str, expected: Rows) -> str:
    if isinstance(rows, str):
        return rows[:_SHOWN_BYTES]
    gone, new = Counter(expected) - Counter(rows), Counter(rows) - Counter(expected)
    some = f"{gone.total()} rows of {len(expected)} are gone, {new.total()} are new"
    return f"{some}: {list(gone)[:2]}; {list(new)[:2]}"[:_SHOWN_BYTES]


def _packed(path: str) -> bool:
    return path.endswith(".gz")


def _day(path: str) -> str:
    return path[: path.index("/") + 1]
