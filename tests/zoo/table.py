"""The zoo's page: what becomes of every kind, for ``make zoo`` and docs/zoo.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from compactor.model import QuarantineReason
from compactor.report.reasons import REASONS
from tests.zoo.kinds import Kind
from tests.zoo.trial import Outcome

DOCUMENT = Path(__file__).parents[2] / "docs" / "zoo.md"
_HEAD = """\
# What becomes of which source

Made by `make zoo ARGS="--write docs/zoo.md"`. Five sources of each kind, as its software writes
them, went through the product at its default settings (or those named), and the kind's own reader
read before and after. A kind is *wrong* unless that reader saw every record of the sources and no
other, in the outputs and in what was left alone. Each name links to the page that documents the
shape. The kinds are in `tests/zoo/families/`.

"""
# What became of the sources of a kind, and why some were left alone.
_Fate = tuple[str, str]


def table(outcomes: Mapping[str, Outcome], kinds: Mapping[str, Kind]) -> str:
    """The document: a summary, and the kinds by what becomes of them, one a line."""
    fates: dict[_Fate, list[str]] = {}
    for name, outcome in outcomes.items():
        fate = outcome.decided, outcome.reasons
        fates.setdefault(fate, []).append(_line(kinds[name], outcome))
    # The most frequent first; equal counts by name, so that the page depends on nothing else.
    ordered = sorted(fates.items(), key=lambda item: (-len(item[1]), item[0]))
    sections = [f"{_heading(fate)}\n\n" + "\n".join(lines) for fate, lines in ordered]
    return f"{_HEAD}{summary(outcomes)}\n\n" + "\n\n".join(sections) + "\n"


def summary(outcomes: Mapping[str, Outcome]) -> str:
    """How many there are of what."""
    counts = Counter(outcome.decided for outcome in outcomes.values())
    wrong = sum(bool(outcome.faults) for outcome in outcomes.values())
    parts = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    return f"{len(outcomes)} kinds: {parts}; {len(outcomes) - wrong} right, {wrong} wrong."


def _heading(fate: _Fate) -> str:
    decided, reasons = fate
    title = f"## {decided.capitalize()}"
    if not reasons:
        return title
    advice = [_advice(reason) for reason in reasons.split(", ")]
    return f"{title}: {reasons}\n\n{' '.join(advice)}"


def _advice(reason: str) -> str:
    """The product's own, as its reports give it."""
    if reason not in set(QuarantineReason):
        return "No setting decides it."
    remedy = REASONS[reason].remedy
    if remedy.startswith("set "):
        return f"{remedy[0].upper()}{remedy[1:]}."
    return f"No setting decides it: {remedy}."


def _line(kind: Kind, outcome: Outcome) -> str:
    given = ", ".join(f"`{name}: {value}`" for name, value in kind.given.items())
    line = f"- [{kind.name}]({kind.url})" + (f": {given}" if given else "")
    return f"{line} **wrong**" if outcome.faults else line
