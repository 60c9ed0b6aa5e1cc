"""JSON values as they are decoded, without rounding any number, and their text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
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


def json_text(value: Any) -> str:
    """Return a decoded value as JSON, its numbers as they were written.

    Raises:
        Misfit: it has more than 200 levels of arrays and objects, or an object in it has a name
            twice.
    """
    text = plain_text(value)
    for level in levels_of(value):
        for container in level:
            require_names_once(container)
    return text


def plain_text(value: Any) -> str:
    """Return the same for a value in which no object is a :class:`Repeated`."""
    try:
        text = msgspec.json.encode(value, enc_hook=_as_written).decode()
    except RecursionError:
        raise Misfit(TOO_DEEP) from None
    if (
        text.count("[") + text.count("{") > DEEPEST
        and len([*islice(levels_of(value), DEEPEST + 1)]) > DEEPEST
    ):
        raise Misfit(TOO_DEEP)
    return text


def _as_written(value: Any) -> msgspec.Raw:
    return msgspec.Raw(value.encode())


def levels_of(value: Any) -> Iterator[list[Any]]:
    """Yield the arrays and objects of each level of a value, the outermost first."""
    level = [value] if isinstance(value, dict | list) else []
    while level:
        yield level
        parts = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for one in chain.from_iterable(parts) if isinstance(one, dict | list)]


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
    """Return a JSON value, in which an object that has a name twice is a :class:`Repeated`.

    Raises:
        Misfit: it has more levels than Python's parser takes.
    """
    try:
        return json.loads(record, object_pairs_hook=_object, parse_float=Number)
    except RecursionError:
        raise Misfit(TOO_DEEP) from None


def distinct_names(record: bytes) -> int | None:
    """Return the number of names in all objects of a JSON value; None if one has a name twice."""
    count = 0

    def take(pairs: list[tuple[str, Any]]) -> None:
        nonlocal count
        count += len(pairs)
        if len(dict(pairs)) != len(pairs):
            raise Misfit

    try:
        json.loads(record, object_pairs_hook=take)
    except (Misfit, RecursionError):
        return None
    return count


class Repeated(dict[str, Any]):
    """An object that has a name twice; the last value counts."""

    __slots__ = ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    return value if len(value) == len(pairs) else Repeated(value)


def require_names_once(value: Any) -> None:
    """Raise :class:`Misfit` for an object that has a name twice."""
    if type(value) is Repeated:
        raise Misfit("it has an object with two values of one name, of which its column keeps one")
