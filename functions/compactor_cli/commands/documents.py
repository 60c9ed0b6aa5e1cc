"""Strict reading of JSON documents that a user wrote."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

_DEEPEST = 50


def read_object(text: str) -> dict[str, Any]:
    """Return the JSON object in a text.

    Raises:
        ValueError: it is not an object, repeats a key at any level, is nested too deeply, or
            contains NaN or an infinite number; the message says which.
    """
    try:
        given = json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_number
        )
    except RecursionError:
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels") from None
    if not isinstance(given, dict):
        raise ValueError("it is not a JSON object")
    _check_depth(given)
    return given


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for n, name in enumerate(names) if name in names[:n])
        raise ValueError(f"{twice!r} appears twice")
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large")
    return number


def _check_depth(given: dict[str, Any]) -> None:
    level: list[Any] = [given]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for one in level:
            inner += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        if not inner:
            return
        level = inner
    raise ValueError(f"it is nested deeper than {_DEEPEST} levels")
