"""How much each declaration of ``formats`` covers: of what a plan would compact, or a run did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor.formats import Declaration
from compactor.sizes import human_bytes, plural


def by_declaration(
    formats: Sequence[Declaration], covered: Mapping[str, tuple[int, int]]
) -> list[dict[str, Any]]:
    """Return each declaration with its objects and bytes; last an empty one, for those of none.

    Args:
        formats: of the settings.
        covered: objects and bytes by number of the declaration, from 1; 0 for none.
    """
    names = [*(f"{one.match}: {one.text}" for one in formats), ""]
    numbers = [*range(1, len(names)), 0]
    amounts = (covered.get(str(number), (0, 0)) for number in numbers)
    return [
        {"declaration": name, "objects": objects, "bytes": size}
        for name, (objects, size) in zip(names, amounts, strict=True)
    ]


def coverage_lines(
    formats: Sequence[Declaration], covered: Mapping[str, tuple[int, int]]
) -> list[str]:
    """Return a line for each declaration, and one for objects that none covers, if there are any.

    Args:
        formats: of the settings.
        covered: see :func:`by_declaration`.
    """
    lines = []
    for one in by_declaration(formats, covered):
        amount = f"{plural(one['objects'], 'object')}, {human_bytes(one['bytes'])}"
        if one["declaration"]:
            lines.append(f"formats declares {amount}: {one['declaration']}")
        elif one["objects"]:
            lines.append(f"not declared: {amount}, compacted if named, dated or proven")
    return lines
