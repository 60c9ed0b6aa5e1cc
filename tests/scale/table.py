"""The figures of all runs beside each other, and which goals they meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from compactor.sizes import plural
from tests.scale.figures import Figures
from tests.scale.services import FUNCTIONS

BEGIN, END = "<!-- scale: made by python -m tests.scale --write -->", "<!-- /scale -->"
_MOST_SECONDS, _MOST_EVENTS, _WALL_SECONDS = 600.0, 5_000, 3_600.0
_MOST_OF_GETS, _MOST_DOLLARS = 1.06, 1.0

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Goal:
    """What is wanted, what was found, whether that is enough, and why it is not."""

    wanted: str
    found: str
    met: bool
    because: str = ""

    @property
    def verdict(self) -> str:
        return "met" if self.met else "**missed**"

    @property
    def reason(self) -> str:
        """A line on a goal that is missed."""
        return f"Missed, {self.wanted}: {self.because}."


def heads(runs: Sequence[Figures]) -> Row:
    """Of the table of figures."""
    return ("", *(one.title for one in runs))


def rows(runs: Sequence[Figures]) -> list[Row]:
    """All figures, a column a run."""
    found = [(name, *map(tell, runs)) for name, tell in _TOLD]
    for kind in dict.fromkeys(part for one in runs for part in one.dollars()):
        found.append((f"$ {kind}", *(f"{one.dollars().get(kind, 0.0):,.2f}" for one in runs)))
    found.append(("$ in all", *(f"{one.total_dollars:,.2f}" for one in runs)))
    return found


def _n(value: float) -> str:
    return f"{value:,.0f}"


def _of(tell: Callable[[Figures], float]) -> Callable[[Figures], str]:
    return lambda one: _n(tell(one))


def _memory(name: str) -> Callable[[Figures], str]:
    of = FUNCTIONS[name].memory_mb
    return lambda one: f"{one.memory[name]:,.0f} of {of:,}" if name in one.memory else "-"


def _longest(name: str) -> Callable[[Figures], str]:
    def tell(one: Figures) -> str:
        seconds = one.longest.get(name, 0.0)
        return f"{seconds:,.1f}" if seconds < 100 else _n(seconds)

    return tell


def _others(one: Figures) -> int:
    return one.of_kind("GET") - one.source_gets + one.of_kind("HEAD")


_TOLD: Sequence[tuple[str, Callable[[Figures], str]]] = (
    ("Objects", _of(lambda one: one.objects)),
    ("Partitions worked on here", lambda one: f"{one.sampled:,} of {one.partitions:,}"),
    ("GET of sources", _of(lambda one: one.source_gets)),
    ("LIST of sources", _of(lambda one: one.requests["LIST source"])),
    ("other LIST", _of(lambda one: one.of_kind("LIST") - one.requests["LIST source"])),
    ("other GET, HEAD", _of(_others)),
    ("PUT", _of(lambda one: one.of_kind("PUT"))),
    ("Invocations", _of(lambda one: sum(one.invocations.values()))),
    ("of them of discovery", _of(lambda one: one.invocations["discover"])),
    ("Function-seconds", _of(lambda one: sum(one.seconds.values()))),
    ("of them of discovery", _of(lambda one: one.seconds["discover"])),
    ("Longest: discovery, s", _longest("discover")),
    ("Longest: worker, s", _longest("compact_partition")),
    ("Longest: planning clean-up, s", _longest("plan_clean_up")),
    ("Longest: report, s", _longest("report")),
    ("Peak: discovery, MB", _memory("discover")),
    ("Peak: worker, MB", _memory("compact_partition")),
    ("Peak: planning clean-up, MB", _memory("plan_clean_up")),
    ("Peak: report, MB", _memory("report")),
    ("Largest state, bytes", _of(lambda one: max(one.payloads.values()))),
    ("Item list, bytes", _of(lambda one: one.list_bytes)),
    ("History of the run, events", _of(lambda one: one.parent.events)),
    ("History of a child, events", _of(lambda one: one.child.events)),
    ("Wall clock, s", _of(lambda one: one.wall_seconds)),
    ("the same at 5,500 GET/s in all", _of(lambda one: one.wall_unsplit_seconds)),
)


# The others are shown on the terminal alone.
_ON_PAGE = frozenset(
    {
        "Objects",
        "GET of sources",
        "LIST of sources",
        "other LIST",
        "PUT",
        "Function-seconds",
        "Longest: worker, s",
        "Wall clock, s",
    }
)


def page_rows(runs: Sequence[Figures]) -> list[Row]:
    """The rows of docs/performance.md: what was asked for, how long it took, and what it costs."""
    return [row for row in rows(runs) if row[0] in _ON_PAGE or row[0].startswith("$")]


def goals(runs: Sequence[Figures]) -> list[Goal]:
    """Each goal, over the runs that it is about; the first run and the last of the first case."""
    first = runs[0]
    unchanged = next((one for one in runs if not one.source_gets), None)
    found = list(_of_all(runs))
    killed = ", had Lambda let it" if _killed(first) else ""
    found.append(
        Goal(
            "the first run ends within an hour at 1,000 workers",
            f"{plural(round(first.wall_seconds / 60), 'minute')}{killed}; where S3 serves the whole"
            f" bucket at the rate of one prefix, {first.wall_unsplit_seconds / 60:,.0f}",
            first.wall_seconds <= _WALL_SECONDS and not killed,
            "an invocation is ended by Lambda" if killed else "see the wall clock",
        )
    )
    ratio = first.total_dollars / first.dollars()["GET of sources"]
    wanted = f"it costs at most {_MOST_OF_GETS} times its GETs"
    found.append(Goal(wanted, f"{ratio:.3f} times", ratio <= _MOST_OF_GETS, _costs(first)))
    if unchanged is not None:
        dollars = unchanged.total_dollars
        wanted = f"a run with nothing new costs less than ${_MOST_DOLLARS:.0f}"
        found.append(Goal(wanted, f"${dollars:,.2f}", dollars < _MOST_DOLLARS, _costs(unchanged)))
    return found


def _costs(one: Figures) -> str:
    """What a run costs beside its GETs, the dearest first."""
    parts = {name: cost for name, cost in one.dollars().items() if name != "GET of sources"}
    dearest = sorted(parts, key=lambda name: -parts[name])
    return ", ".join(f"{name} ${parts[name]:,.2f}" for name in dearest if parts[name] >= 0.005)


def _of_all(runs: Sequence[Figures]) -> Iterator[Goal]:
    seconds, name, title = max(
        (seconds, name, one.title) for one in runs for name, seconds in one.longest.items()
    )
    told = f"{name} {seconds:,.0f} s ({title})"
    if seconds > runs[0].services.functions.seconds:
        told += ": Lambda ends it at 900 s, and the run fails"
    because = "it looks at its time too late"
    yield Goal("no invocation above 10 minutes", told, seconds <= _MOST_SECONDS, because)
    known = [
        (mb / FUNCTIONS[name].memory_mb, f"{name} {mb:,.0f} MB ({one.title})")
        for one in runs
        for name, mb in one.memory.items()
    ]
    if known:
        share, told = max(known)
        yield Goal(
            "none above its memory",
            f"{told}, {share:.0%} of what it has",
            share <= 1.0,
            "Lambda ends it there",
        )
    events = max(max(one.parent.events, one.child.events) for one in runs)
    wanted = "history below 5,000 events"
    yield Goal(wanted, f"{events:,}", events < _MOST_EVENTS, "too many calls in one execution")


def _killed(one: Figures) -> bool:
    return max(one.longest.values()) > one.services.functions.seconds


def as_markdown(runs: Sequence[Figures], notes: Sequence[str]) -> str:
    """Both tables, for a document."""
    lines = [_line(heads(runs)), _line([":---", *("---:" for _ in runs)])]
    lines += map(_line, page_rows(runs))
    lines += ["", _line(("Goal", "Found", "")), _line((":---", ":---", ":---"))]
    judged = goals(runs)
    lines += [_line((one.wanted, one.found, one.verdict)) for one in judged]
    for said in (*reasons(judged), *notes):
        lines += ["", said]
    return "\n".join(lines)


def reasons(judged: Sequence[Goal]) -> list[str]:
    """Why goals are missed, a line each."""
    return [one.reason for one in judged if not one.met]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
