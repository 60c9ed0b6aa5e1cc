"""The zoo's table: what becomes of every kind, for ``make zoo`` and docs/zoo.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.zoo.kinds import Kind
from tests.zoo.trial import Outcome

DOCUMENT = Path(__file__).parents[2] / "docs" / "zoo.md"
_HEAD = """\
# What becomes of which source

Made by `make zoo ARGS="--write docs/zoo.md"`. Five sources of each kind, as its software writes
them, went through the product at its default settings (or those named), and the kind's own reader
read before and after. *Right* says that it saw every record of the sources and no other, in the
outputs and in what was left alone. The kinds are in `tests/zoo/families/`.

"""


def table(outcomes: Mapping[str, Outcome], kinds: Mapping[str, Kind]) -> str:
    """The document: a summary and a row a kind."""
    rows = [_row(kinds[name], outcome) for name, outcome in outcomes.items()]
    lines = ["| Source | Its shape | Decided | Reason | Right |", "|---|---|---|---|---|", *rows]
    return f"{_HEAD}{summary(outcomes)}\n\n" + "\n".join(lines) + "\n"


def summary(outcomes: Mapping[str, Outcome]) -> str:
    """How many there are of what."""
    counts = Counter(outcome.decided for outcome in outcomes.values())
    wrong = sum(bool(outcome.faults) for outcome in outcomes.values())
    parts = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    return f"{len(outcomes)} kinds: {parts}; {len(outcomes) - wrong} right, {wrong} wrong."


def _row(kind: Kind, outcome: Outcome) -> str:
    given = ", ".join(f"`{name}: {value}`" for name, value in kind.given.items())
    name = f"{kind.name} ({given})" if given else kind.name
    right = "**no**" if outcome.faults else "yes"
    cells = (name, f"[{kind.page}]({kind.url})", outcome.decided, outcome.reasons, right)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
