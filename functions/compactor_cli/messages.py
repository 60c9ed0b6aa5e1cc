"""Messages on standard error: how much is printed, and whether as text or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from compactor.escaping import visible


@dataclass(frozen=True, slots=True)
class Form:
    """What ``-q``, ``-v`` and ``--log-format`` say.

    Attributes:
        is_quiet: print errors only.
        is_verbose: print errors in full, with their causes.
        as_json: print one JSON object a line.
    """

    is_quiet: bool = False
    is_verbose: bool = False
    as_json: bool = False


# Not a ContextVar, because threads print as well.
_forms = [Form()]


@contextmanager
def own_form() -> Iterator[None]:
    """Keep what :func:`set_form` sets within the block."""
    before = _forms[0]
    try:
        yield
    finally:
        _forms[0] = before


def set_form(form: Form) -> None:
    """Print in this form from now on."""
    _forms[0] = form


def form() -> Form:
    """Return the form of messages."""
    return _forms[0]


def write(level: str, text: str, **fields: Any) -> None:
    """Print one message; with ``-q``, only an error.

    Args:
        level: ``info``, ``warning`` or ``error``.
        text: invisible characters are escaped.
        fields: more about it, which only JSON shows.
    """
    if form().is_quiet and level != "error":
        return
    if form().as_json:
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps({"time": time, "level": level, "message": text, **fields})
    else:
        line = visible(text)
    print(line, file=sys.stderr, flush=True)
