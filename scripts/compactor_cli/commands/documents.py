"""A JSON document that a person wrote, read without guessing what was meant."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

_DEEPEST = 50


def read_object(text: str) -> dict[str, Any]:
    """The JSON object in a text.

    Raises:
        ValueError: it is invalid, names a key twice at any level, is nested deeper than any input,
            or holds a number that JSON has not; the message says which.
    """
    try:
        given = json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_number
        )
    except RecursionError:
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels") from None
    if not isinstance(given, dict):
        raise ValueError("it is no object")
    _check_depth(given)
    return given


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for n, name in enumerate(names) if name in names[:n])
        raise ValueError(f"{twice!r} stands in it twice")
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
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
