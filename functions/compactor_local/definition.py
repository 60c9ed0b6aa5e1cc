"""Reads a state machine file, and fills in its substitutions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from compactor_local.model import SUBSTITUTIONS, VALUES, EngineError
from compactor_local.tables_model import TABLES_SUBSTITUTIONS, TABLES_VALUES

ACCOUNT = "123456789012"
REGION = "us-east-1"

_SUBSTITUTION = re.compile(r"\$\{([A-Za-z0-9_]+)\}")


def function_arn(name: str) -> str:
    """Return the ARN of a function on this machine."""
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def load_definition(path: Path) -> str:
    """Return the definition's text with its substitutions filled in.

    Raises:
        EngineError: it has an unknown substitution.
    """
    return _SUBSTITUTION.sub(_substitute, path.read_text(encoding="utf-8"))


def _substitute(match: re.Match[str]) -> str:
    functions = {**SUBSTITUTIONS, **TABLES_SUBSTITUTIONS}
    values = {**VALUES, **TABLES_VALUES}
    if match[1] in functions:
        return function_arn(functions[match[1]])
    if match[1] in values:
        return values[match[1]]
    raise EngineError(f"the definition has an unknown substitution {match[0]}")


def each_state(machine: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every state of a definition with its name, including those in Map and Parallel."""
    for name, state in machine.get("States", {}).items():
        yield name, state
        processor = state.get("ItemProcessor") or state.get("Iterator") or {}
        for inner in (processor, *state.get("Branches", ())):
            yield from each_state(inner)
