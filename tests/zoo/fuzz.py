"""Sources of the zoo mixed, cut, glued, re-ordered and stored in other ways, and the same law.

Each schedule is one partition: some sources of one kind or of several, some of them changed. The
reader of a changed source is the reader of its kind, on its bytes alone: what it sees there it
must see in the output as well, cut or not. Changes that take a source's meaning away (another
encoding of its characters, bytes from nowhere) make it a blob: nothing may share its output.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TextIO

from tests.zoo.encodings import ENCODINGS
from tests.zoo.families import KINDS
from tests.zoo.kinds import Kind, Verdict
from tests.zoo.readers import blob, document, json_lines, json_stream, lines, table
from tests.zoo.trial import Outcome, Source, tried

# Readers that make sense of a source from any line on: what stands first does not matter to them.
_WITHOUT_A_HEAD = (lines, json_lines)
_FORGETFUL = (*_WITHOUT_A_HEAD, json_stream)
_LONGEST_SOURCE = 20_000
_MEANINGFUL = tuple(bytes([byte]) for byte in b"\"'\r\n\t,;|#{}[]\\<>=: \x00\x1b\xe4\xff0a")
_STRANGE_LINES = (
    *(b"\n", b" \n", b"#\n", b"# a comment\n", b"#Fields: a b\n", b'"\n', b"sep=;\n", b",\n"),
    *(b"a,b\n", b"{}\n", b"[]\n", b"null\n", b"-- MARK --\n", b"\\.\n", b"\x0c\n", b"---\n"),
)
# Readers of tables, and of the same without a header.
_TABLES = {
    table(delimiter, quotes=quotes): table(delimiter, header=False, quotes=quotes)
    for delimiter in ",\t;|"
    for quotes in (True, False)
}


@dataclass(frozen=True)
class Failure:
    """A schedule that broke the law, made small."""

    seed: int
    sources: Sequence[Source]
    faults: Sequence[str]

    def told(self) -> str:
        """How to see it again."""
        text = [f"seed {self.seed}:", *(f"  {fault}" for fault in self.faults)]
        for one in self.sources:
            body = repr(one.plain if len(one.plain) < 1_000 else one.plain[:1_000] + b"...")
            text.append(f"  {one.name!r} ({one.kind}, {one.encoding}): {body}")
        return "\n".join(text) + "\n"


def fuzz(seconds: float, seed: int, schedules: int | None, out: TextIO) -> int:
    """Play schedules until the time is up; prints failures and, last, the figures.

    Returns:
        The exit code.
    """
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end and (schedules is None or counts["schedules"] < schedules):
        sources = schedule(seed + counts["schedules"])
        outcome = tried(sources)
        counts.update(schedules=1, sources=len(sources), left=_left(outcome))
        counts["joined"] += len(sources) - _left(outcome)
        if outcome.faults:
            counts["others"] += 1
            number = seed + counts["schedules"] - 1
            small = shrunk(sources, outcome)
            out.write(Failure(number, small, tried(small).faults).told())
            out.flush()
    schedules_and_sources = f"{counts['schedules']:,} schedules, {counts['sources']:,} sources"
    became = f"{counts['joined']:,} joined, {counts['left']:,} left alone"
    out.write(f"{schedules_and_sources}: {became}, {counts['others']:,} others\n")
    return 1 if counts["others"] else 0


def _left(outcome: Outcome) -> int:
    return len(outcome.left) + sum(outcome.passed_over.values())


def schedule(seed: int) -> list[Source]:
    """The sources of one partition; equal for equal seeds."""
    chance = random.Random(seed)
    default = [kind for kind in KINDS.values() if not kind.given]
    if chance.random() < 0.5:
        default = [kind for kind in default if kind.verdict is not Verdict.LEFT]
    kinds = chance.sample(default, chance.choice((1, 1, 1, 2, 3)))
    sources = [_source(chance, chance.choice(kinds)) for _ in range(chance.randint(2, 6))]
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        at = chance.randrange(len(sources))
        sources[at] = chance.choice(_CHANGES)(chance, sources[at], sources)
    if chance.random() < 0.3:
        chance.shuffle(sources)
    return [
        replace(one, name=f"{n:03}{one.name}{ENCODINGS[one.encoding].ending}")
        for n, one in enumerate(sources)
    ]


def _source(chance: random.Random, kind: Kind) -> Source:
    plain = kind.source(chance.randrange(6), seed=chance.randrange(1_000))
    encoding = chance.choice(("plain", "plain", "gzip", *ENCODINGS))
    if ENCODINGS[encoding].damaged and chance.random() < 0.7:
        encoding = "plain"
    return Source(kind.ending, plain, kind.reader, kind.name, encoding, kind.loose or kind.reader)


# Changes. Each takes the chance, the source and all sources, and gives another source.


def _cut(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    return replace(one, plain=one.plain[: chance.randint(0, len(one.plain))])


def _cut_near_the_end(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    return replace(one, plain=one.plain[: -chance.randint(1, 12)])


def _cut_head(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    if one.reader not in _WITHOUT_A_HEAD:
        return one
    return replace(one, plain=one.plain[chance.randint(0, len(one.plain)) :])


def _reorder(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    if one.reader not in _WITHOUT_A_HEAD:
        return one
    rows = one.plain.split(b"\n")
    chance.shuffle(rows)
    return replace(one, plain=b"\n".join(rows))


def _repeat(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    if one.reader not in _FORGETFUL:
        return one
    plain = (one.plain * chance.choice((2, 40)))[:_LONGEST_SOURCE]
    repeated = replace(one, plain=plain)
    return _as_stream(repeated) if one.reader is json_lines else repeated


def _append(chance: random.Random, one: Source, others: Sequence[Source]) -> Source:
    """Another source, of the same reader, without anything between."""
    same = [other for other in others if other.reader is one.reader in _FORGETFUL]
    if not same:
        return one
    glued = replace(one, plain=one.plain + chance.choice(same).plain)
    return _as_stream(glued) if one.reader is json_lines else glued


def _duplicate(chance: random.Random, one: Source, others: Sequence[Source]) -> Source:
    other = chance.choice(others)
    # Two equal objects are two equal records to every reader, whatever they were meant to be.
    is_object = other.plain.lstrip()[:1] == b"{" and b"\n" not in other.plain.strip()
    return one if is_object and other.reader is document else other


def _line_ends(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    if one.reader is blob:
        return one
    plain = one.plain.replace(b"\r\n", b"\n")
    return replace(one, plain=plain.replace(b"\n", chance.choice((b"\r\n", b"\n\n", b"\n"))))


def _last_end(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    return replace(one, plain=one.plain.rstrip(b"\r\n") + chance.choice((b"", b"\n", b"\r\n")))


def _bom(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    del chance
    return one if one.reader is blob else replace(one, plain=b"\xef\xbb\xbf" + one.plain)


def _carriage_returns(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    del chance
    return replace(one, plain=one.plain.replace(b"\r\n", b"\r").replace(b"\n", b"\r"))


def _wider(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    encoding = chance.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp037"))
    text = one.plain.decode("latin-1")
    return _as_blob(one, text.encode(encoding, "replace"))


def _noise(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    return _as_blob(one, chance.randbytes(chance.choice((12, 48, 300))))


def _header_of_binary(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    kinds = [kind for kind in KINDS.values() if kind.reader is blob]
    return _as_blob(one, chance.choice(kinds).source(0)[: chance.randint(4, 60)])


def _other_name(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    endings = (".log", ".txt", ".dat", "", ".bin", one.name)
    return replace(one, name=chance.choice(endings))


def _touch(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    """A byte that means something to some format, put in or in place of another, or a byte less."""
    if one.reader is blob and one.plain.isascii():
        # Nothing but its signature shows that it is no text.
        return one
    at = chance.randint(0, len(one.plain))
    byte = chance.choice(_MEANINGFUL)
    plain = one.plain[:at] + byte + one.plain[at + chance.randint(0, 1) :]
    touched = replace(one, plain=plain)
    # A line end may be gone, and two values are on a line now.
    return _as_stream(touched) if one.reader is json_lines else touched


def _strange_line(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    rows = one.plain.splitlines(keepends=True)
    at = chance.randint(0, len(rows))
    strange = chance.choice(_STRANGE_LINES)
    rows.insert(at, strange)
    if one.reader is blob:
        return one
    changed = replace(one, plain=b"".join(rows))
    # Behind a last line without its end, it stands on that line.
    glued = at and not rows[at - 1].endswith(b"\n")
    # A JSON document with another value behind it is no document any more.
    second = strange == b"{}\n" and one.plain.lstrip()[:1] == b"{"
    return _as_stream(changed) if second or (glued and one.reader is json_lines) else changed


def _first_line_again(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    rows = one.plain.splitlines(keepends=True)
    if one.reader not in _TABLES or not rows:
        return one
    rows.insert(chance.randint(1, len(rows)), rows[0])
    return replace(one, plain=b"".join(rows))


def _without_its_header(chance: random.Random, one: Source, _: Sequence[Source]) -> Source:
    del chance
    rows_alone = _TABLES.get(one.reader)
    if rows_alone is None:
        return one
    rest = one.plain.partition(b"\n")[2]
    return replace(one, plain=rest, reader=rows_alone, loose=rows_alone)


def _as_stream(one: Source) -> Source:
    return replace(one, reader=json_stream, loose=json_stream)


def _as_blob(one: Source, plain: bytes) -> Source:
    return replace(one, plain=plain, reader=blob, loose=blob, kind=f"{one.kind} as a blob")


_Change = Callable[[random.Random, Source, Sequence[Source]], Source]
_CHANGES: tuple[_Change, ...] = (
    _cut,
    _cut,
    _cut_near_the_end,
    _cut_near_the_end,
    _cut_head,
    _reorder,
    _repeat,
    _append,
    _duplicate,
    _line_ends,
    _last_end,
    _bom,
    _carriage_returns,
    _wider,
    _noise,
    _header_of_binary,
    _other_name,
    _touch,
    _touch,
    _touch,
    _strange_line,
    _first_line_again,
    _without_its_header,
)


# Making failures small.


def shrunk(sources: Sequence[Source], outcome: Outcome) -> list[Source]:
    """Fewer and shorter sources that still fail, in whatever way."""
    best = list(sources)
    if not outcome.faults:
        return best
    for candidate in [*best]:
        fewer = [one for one in best if one is not candidate]
        if fewer and tried(fewer).faults:
            best = fewer
    return _without_rows(best)


def _without_rows(best: list[Source]) -> list[Source]:
    for at in range(len(best)):
        rows = best[at].plain.splitlines(keepends=True)
        number = len(rows) - 1
        while number > 0 and len(rows) < 200:
            shorter = replace(best[at], plain=b"".join(rows[:number] + rows[number + 1 :]))
            candidate = [*best[:at], shorter, *best[at + 1 :]]
            if tried(candidate).faults:
                best = candidate
                del rows[number]
            number -= 1
    return best
