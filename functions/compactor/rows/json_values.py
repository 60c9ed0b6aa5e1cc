"""JSON values as they are decoded, without rounding any number, and their text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

#: Levels of arrays and objects in a value that becomes text. More would end Python's stack, at a
#: depth that depends on the caller.
DEEPEST = 200
TOO_DEEP = f"it has more than {DEEPEST} levels of arrays and objects"


class Misfit(Exception):
    """A value does not fit its column.

    Attributes:
        reason: a complete reason; empty if the column and the value say it all.
        unknown: whether it is a field that the schema lacks.
    """

    def __init__(self, reason: str = "", *, unknown: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.unknown = unknown


class Number(str):
    """A number in JSON with a fraction or an exponent, as it is written."""

    __slots__ = ()


#: Decodes one JSON value without rounding any number.
JSON_VALUES = msgspec.json.Decoder(float_hook=Number)


def json_text(value: Any, levels: int = DEEPEST) -> str:
    """Return a decoded value as JSON, its numbers as they were written.

    Args:
        value: to be written.
        levels: of arrays and objects that it may have.

    Raises:
        Misfit: it has more levels, or an object in it has a name twice.
    """
    if type(value) is Number:
        return value
    if not isinstance(value, dict | list):
        return msgspec.json.encode(value).decode()
    if not levels:
        raise Misfit(TOO_DEEP)
    require_names_once(value)
    if isinstance(value, list):
        return f"[{','.join([json_text(one, levels - 1) for one in value])}]"
    found = [f"{json_text(name)}:{json_text(one, levels - 1)}" for name, one in value.items()]
    return f"{{{','.join(found)}}}"


def json_start(value: Any, most: int) -> str:
    """Return the first characters of :func:`json_text`, without writing the others."""
    text = ""
    for token in _tokens(value):
        text += token
        if len(text) >= most:
            break
    return text[:most]


def _tokens(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield "["
        for number, one in enumerate(value):
            yield "," if number else ""
            yield from _tokens(one)
        yield "]"
    elif isinstance(value, dict):
        yield "{"
        for number, (name, one) in enumerate(value.items()):
            yield f"{',' if number else ''}{json_text(name)}:"
            yield from _tokens(one)
        yield "}"
    else:
        yield json_text(value)


def with_repeated(record: bytes) -> Any:
    """Return a JSON value, in which an object that has a name twice is a :class:`Repeated`."""
    return json.loads(record, object_pairs_hook=_object, parse_float=Number)


class Repeated(dict[str, Any]):
    """An object that has a name twice; the last value counts."""

    __slots__ = ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Repeated(found)


def require_names_once(value: Any) -> None:
    """Raise :class:`Misfit` for an object that has a name twice."""
    if type(value) is Repeated:
        raise Misfit("it has an object with two values of one name, of which its column keeps one")
