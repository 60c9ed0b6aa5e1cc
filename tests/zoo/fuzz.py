"""Sources of the zoo mixed, cut, glued, re-ordered and stored in other ways, and the same law.

Each schedule is one partition: sources of one kind or of several, some of them changed. What the
reader of a kind sees in the bytes of a changed source, cut or not, it must see in the output as
well. Changes that take a source's meaning away (another encoding of its characters, random bytes)
make it a blob: nothing may share its output.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TextIO

from tests.zoo.encodings import ENCODINGS
from tests.zoo.families import KINDS
from tests.zoo.kinds import JOINED, TEXT, Kind
from tests.zoo.readers import BOM, blob, headed, json_lines, json_stream, lines, table, zeek
from tests.zoo.trial import Source, tried

# Readers that make sense of a source from any line on.
_WITHOUT_A_HEAD = (lines, json_lines)
# Without the very names of their fields, they are any other log.
_UNTOUCHED = (blob, headed, zeek)
_FORGETFUL = (*_WITHOUT_A_HEAD, json_stream)
_LONGEST_SOURCE = 20_000
_MEANINGFUL = tuple(bytes([byte]) for byte in b"\"'\r\n\t,;|#{}[]\\<>=: \x00\x1b\xe4\xff0a")
_STRANGE_LINES = (
    *(b"\n", b" \n", b"#\n", b"# a comment\n", b"#Fields: a b\n", b'"\n', b"sep=;\n", b",\n"),
    *(b"a,b\n", b"{}\n", b"[]\n", b"null\n", b"-- MARK --\n", b"\\.\n", b"\x0c\n", b"---\n"),
)
_HEADED = [table(delimiter, quotes=quotes) for delimiter in ",\t;|" for quotes in (True, False)]
_Change = Callable[[random.Random, Source, Sequence[Source]], Source]


def fuzz(seconds: float, seed: int, schedules: int | None, out: TextIO) -> int:
    """Try schedules until the time is up; prints failures and, last, the figures.

    Returns:
        The exit code.
    """
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end and (schedules is None or counts["schedules"] < schedules):
        number = seed + counts["schedules"]
        sources = schedule(number)
        outcome = tried(sources)
        alone = len(outcome.reasons) + sum(outcome.skipped.values())
        counts.update(schedules=1, sources=len(sources), alone=alone)
        if outcome.faults:
            counts["wrong"] += 1
            small = shrunk(sources)
            out.write(f"seed {number}: {'; '.join(tried(small).faults)}\n")
            out.writelines(
                f"  {source.name!r} ({source.kind}, {source.encoding}, {source.declared}):"
                f" {source.plain[:1000]!r}\n"
                for source in small
            )
            out.flush()
    out.write(
        f"{counts['schedules']:,} schedules, {counts['sources']:,} sources,"
        f" {counts['alone']:,} of them left alone; {counts['wrong']:,} schedules wrong\n"
    )
    return 1 if counts["wrong"] else 0


def schedule(seed: int) -> list[Source]:
    """The sources of one partition; equal for equal seeds."""
    chance = random.Random(seed)
    kinds = [kind for kind in KINDS.values() if not _is_wrongly_declared(kind)]
    if chance.random() < 0.5:
        kinds = [kind for kind in kinds if JOINED in kind.expected]
    kinds = chance.sample(kinds, chance.choice((1, 1, 1, 2, 3)))
    sources = [_source(chance, chance.choice(kinds)) for _ in range(chance.randint(2, 6))]
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        at = chance.randrange(len(sources))
        sources[at] = chance.choice(_CHANGES)(chance, sources[at], sources)
    if chance.random() < 0.3:
        chance.shuffle(sources)
    return [
        replace(source, name=f"{n:03}{source.name}{ENCODINGS[source.encoding].ending}")
        for n, source in enumerate(sources)
    ]


def _is_wrongly_declared(kind: Kind) -> bool:
    return kind.declared is not None and JOINED not in kind.expected


def _source(chance: random.Random, kind: Kind) -> Source:
    plain = kind.source(chance.randrange(6), seed=chance.randrange(1_000))
    encoding = chance.choice(("plain", "plain", "gzip", *ENCODINGS))
    if ENCODINGS[encoding].damaged and chance.random() < 0.7:
        encoding = "plain"
    loose = kind.loose or kind.reader
    return Source(kind.ending, plain, kind.reader, kind.name, kind.declared, encoding, loose)


# Changes. Each takes the source and all sources, and returns another source.


def _cut(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    return _as_stream(replace(source, plain=source.plain[: chance.randint(0, len(source.plain))]))


def _cut_near_the_end(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    return _as_stream(replace(source, plain=source.plain[: -chance.randint(1, 12)]))


def _cut_head(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    if source.reader not in _WITHOUT_A_HEAD:
        return source
    return _as_stream(replace(source, plain=source.plain[chance.randint(0, len(source.plain)) :]))


def _reorder(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    if source.reader not in _WITHOUT_A_HEAD:
        return source
    rows = source.plain.split(b"\n")
    chance.shuffle(rows)
    return _as_stream(replace(source, plain=b"\n".join(rows)))


def _append(chance: random.Random, source: Source, others: Sequence[Source]) -> Source:
    """Another source of the same reader, or the same again, with nothing between."""
    same = [other for other in others if other.reader is source.reader in _FORGETFUL]
    if not same:
        return source
    plain = source.plain + chance.choice(same).plain * chance.choice((1, 1, 40))
    return _as_stream(replace(source, plain=plain[:_LONGEST_SOURCE]))


def _duplicate(chance: random.Random, source: Source, others: Sequence[Source]) -> Source:
    del source
    return chance.choice(others)


def _line_ends(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    if source.reader in _UNTOUCHED:
        return source
    plain = source.plain.replace(b"\r\n", b"\n")
    return replace(source, plain=plain.replace(b"\n", chance.choice((b"\r\n", b"\n\n", b"\n"))))


def _last_end(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    return replace(
        source, plain=source.plain.rstrip(b"\r\n") + chance.choice((b"", b"\n", b"\r\n"))
    )


def _bom(_: random.Random, source: Source, __: Sequence[Source]) -> Source:
    return source if source.reader is blob else replace(source, plain=BOM + source.plain)


def _carriage_returns(_: random.Random, source: Source, __: Sequence[Source]) -> Source:
    return replace(source, plain=source.plain.replace(b"\r\n", b"\r").replace(b"\n", b"\r"))


def _wider(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    encoding = chance.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp037"))
    return _as_blob(source, source.plain.decode("latin-1").encode(encoding, "replace"))


def _noise(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    return _as_blob(source, b"\xff" + chance.randbytes(chance.choice((12, 48, 300))))


def _touch(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    """A byte that means something to some format, added, or in place of another."""
    if source.reader in _UNTOUCHED:
        return source
    at = chance.randint(0, len(source.plain))
    byte = chance.choice(_MEANINGFUL)
    plain = source.plain[:at] + byte + source.plain[at + chance.randint(0, 1) :]
    return _as_stream(replace(source, plain=plain))


def _strange_line(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    if source.reader in _UNTOUCHED:
        return source
    rows = source.plain.splitlines(keepends=True)
    rows.insert(chance.randint(0, len(rows)), chance.choice(_STRANGE_LINES))
    return _as_stream(replace(source, plain=b"".join(rows)))


def _first_line_again(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    rows = source.plain.splitlines(keepends=True)
    if source.reader not in _HEADED or not rows:
        return source
    rows.insert(chance.randint(1, len(rows)), rows[0])
    return replace(source, plain=b"".join(rows))


def _other_name(chance: random.Random, source: Source, _: Sequence[Source]) -> Source:
    # A document that is named .log is one.
    endings = (".txt", ".dat", "", ".bin", *([".log"] if source.reader in _FORGETFUL else []))
    return replace(source, name=chance.choice(endings))


def _as_stream(source: Source) -> Source:
    """Two JSON values may share a line now, or a line is none, as in any log."""
    if source.reader not in {json_lines, json_stream}:
        return source
    broken = any(kind == "raw" for kind, *_ in json_stream(source.plain))
    is_text = source.declared == TEXT or (broken and source.reader is json_lines)
    reader = lines if is_text else json_stream
    return replace(source, reader=reader, loose=reader)


def _as_blob(source: Source, plain: bytes) -> Source:
    kind = f"{source.kind} as a blob"
    return replace(
        source, name=".bin", plain=plain, reader=blob, loose=blob, kind=kind, declared=None
    )


_CHANGES: tuple[_Change, ...] = (
    *(_cut, _cut, _cut_near_the_end, _cut_near_the_end, _cut_head, _reorder, _append, _duplicate),
    *(_line_ends, _last_end, _bom, _carriage_returns, _wider, _noise, _other_name),
    *(_touch, _touch, _touch, _strange_line, _first_line_again),
)


def shrunk(sources: Sequence[Source]) -> list[Source]:
    """Fewer and shorter sources that still fail, in whatever way."""
    best = list(sources)
    for candidate in sources:
        fewer = [source for source in best if source is not candidate]
        if fewer and tried(fewer).faults:
            best = fewer
    for at in range(len(best)):
        rows = best[at].plain.splitlines(keepends=True)
        for number in range(min(len(rows), 200) - 1, 0, -1):
            shorter = replace(best[at], plain=b"".join(rows[:number] + rows[number + 1 :]))
            smaller = [*best[:at], shorter, *best[at + 1 :]]
            if tried(smaller).faults:
                best = smaller
                del rows[number]
    return best
