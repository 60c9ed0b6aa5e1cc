"""Describes and checks one field of a run's input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import msgspec

from compactor.errors import InvalidInput


class Required(Enum):
    """The default of a field that must be given."""

    REQUIRED = "required"


class Reader(msgspec.Struct, frozen=True):
    """The check of a field's value.

    Attributes:
        accepted: what is accepted, in words.
        read: returns the normalised value, or raises ValueError. Its message, if it has one, is
            shown instead of ``accepted``.
    """

    accepted: str
    read: Callable[[object], object]


class Declared(msgspec.Struct, frozen=True):
    """A field as declared on the attribute of the same name; see :class:`FieldSpec`."""

    section: str
    default: object
    reader: Reader
    meaning: str

    def named(self, name: str) -> FieldSpec:
        """Return the field with its name."""
        return FieldSpec(name, self.section, self.default, self.reader, self.meaning)


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of the input.

    Attributes:
        name: its name in the JSON input and in Settings.
        section: the heading under which it is documented.
        default: its value if it is absent.
        reader: checks its value.
        meaning: what it does, in one or two sentences.
    """

    name: str
    section: str
    default: object
    reader: Reader
    meaning: str

    @property
    def required(self) -> bool:
        """Whether the field must be given."""
        return self.default is Required.REQUIRED

    @property
    def accepted(self) -> str:
        """What is accepted, in words."""
        return self.reader.accepted

    @property
    def default_text(self) -> str:
        """The default as JSON, or ``required``."""
        return "required" if self.required else json.dumps(self.default)

    def parse(self, value: object) -> object:
        """Return the checked, normalised value. ``None`` is accepted if it is the default.

        Raises:
            InvalidInput: the value is not accepted.
        """
        if value is None and self.default is None:
            return None
        try:
            return self.reader.read(value)
        except ValueError as error:
            raise InvalidInput(self.name, value, str(error) or self.accepted) from None


def whole(minimum: int, maximum: int) -> Reader:
    """Accept a JSON integer in this range; neither a float nor a string of digits."""

    def read(value: object) -> int:
        # bool is a subclass of int, but true is not a count.
        if type(value) is not int or not minimum <= value <= maximum:
            raise ValueError
        return value

    return Reader(f"a whole number from {minimum:,} to {maximum:,}", read)


def number(minimum: int, maximum: int) -> Reader:
    """Accept a finite JSON number in this range; read as float."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError
        # NaN is in no range. Integers may be too large for a float, so they are compared first.
        if not minimum <= value <= maximum:
            raise ValueError
        return float(value)

    return Reader(f"a number from {minimum:,} to {maximum:,}", read)


def flag() -> Reader:
    """Accept a JSON boolean."""

    def read(value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError
        return value

    return Reader("true or false", read)


def one_of(*choices: str) -> Reader:
    """Accept one of these strings."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError
        return str(value)

    quoted = [json.dumps(str(choice)) for choice in choices]
    return Reader(f"{', '.join(quoted[:-1])} or {quoted[-1]}", read)


def matching(pattern: str, accepted: str) -> Reader:
    """Accept a string that matches a regular expression as a whole."""
    allowed = re.compile(pattern)

    def read(value: object) -> str:
        if not isinstance(value, str) or not allowed.fullmatch(value):
            raise ValueError
        return value

    return Reader(accepted, read)


def globs() -> Reader:
    """Accept a list of non-empty strings; read as tuple."""

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise ValueError
        if not all(isinstance(glob, str) and glob for glob in value):
            raise ValueError
        return tuple(value)

    return Reader('a list of globs such as ["*.json.gz"]', read)


def names() -> Reader:
    """Accept a list of distinct, non-empty strings; read as tuple."""

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise ValueError
        if not all(isinstance(name, str) and name for name in value):
            raise ValueError
        if len(set(value)) < len(value):
            raise ValueError
        return tuple(value)

    return Reader('a list of names, each once, such as ["day"]', read)


def values_by_name() -> Reader:
    """Accept an object that maps names to lists of distinct strings; read as tuples by name."""

    def read(value: object) -> dict[str, tuple[str, ...]]:
        if not isinstance(value, Mapping) or not value:
            raise ValueError
        found = {name: tuple(_strings(listed)) for name, listed in value.items() if _named(name)}
        if len(found) < len(value):
            raise ValueError
        return found

    return Reader('an object of columns, each with its values, such as {"op": ["D"]}', read)


def _named(name: object) -> bool:
    return isinstance(name, str) and bool(name)


def _strings(listed: object) -> Sequence[str]:
    if not isinstance(listed, Sequence) or isinstance(listed, str | bytes) or not listed:
        raise ValueError
    if not all(isinstance(one, str) for one in listed) or len(set(listed)) < len(listed):
        raise ValueError
    return listed


def text(longest: int, accepted: str) -> Reader:
    """Accept a string that is not blank, of at most this many characters."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > longest:
            raise ValueError
        return value.strip()

    return Reader(accepted, read)
