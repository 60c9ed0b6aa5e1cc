"""Parses docs/format.md: its blocks of fields, values, keys and examples."""

from __future__ import annotations

import re

import msgspec

from tests.support.document_tables import REQUIRED, VERSION, ZERO, Table

_BLOCK = re.compile(r"^```(\w+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TYPE = re.compile(r"(\w+)( v1)?")
_FIELDS = re.compile(
    r"  (?P<names>\w+\??(?:, \w+\??)*): (?P<kind>\S+)(?: = (?P<default>\S+))?"
    r"(?: {2,}(?P<meaning>\S.*))?"
)
_COMMON = re.compile(r"(?P<names>\w+(?:, \w+)*) {2,}(?P<meaning>\S.*)")
_VALUE = re.compile(r"  (\S+(?: \S+)*) {2,}\S.*")
_CONTINUED = re.compile(r" {6,}(\S.*)")


class Told(msgspec.Struct):
    """The document's description of one type.

    Attributes:
        meanings: meanings of its fields, including those that all types share.
    """

    fields: Table = {}
    meanings: dict[str, str] = {}


def blocks_of(text: str, kind: str) -> list[tuple[str, str]]:
    """Return the fenced blocks of one kind: the text after the kind, and the body."""
    return [(name, body) for found, name, body in _BLOCK.findall(text) if found == kind]


def told_types(text: str) -> dict[str, Told]:
    """Return the types that the document describes."""
    types: dict[str, Told] = {}
    for _, body in blocks_of(text, "fields"):
        told = Told()
        names: list[str] = []
        for line in filter(None, body.splitlines()):
            if found := _TYPE.fullmatch(line):
                assert found[1] not in types, f"{found[1]} is described twice"
                told = types[found[1]] = Told()
                told.fields |= {"version": VERSION} if found[2] else {}
            elif found := _CONTINUED.fullmatch(line):
                told.meanings |= {one: f"{told.meanings[one]} {found[1]}" for one in names}
            else:
                names = _take(line, told)
    common = _common(text)
    for name, one in types.items():
        for field, meaning in one.meanings.items():
            one.meanings[field] = meaning or common.get(field, "")
            assert one.meanings[field], f"{name}.{field} has no meaning"
    return types


def _take(line: str, told: Told) -> list[str]:
    found = _FIELDS.fullmatch(line)
    assert found is not None, f"no field: {line}"
    shown = found["names"].split(", ")
    names = [one.removesuffix("?") for one in shown]
    assert not told.fields.keys() & names, f"described twice: {line}"
    for name, one in zip(names, shown, strict=True):
        absent = found["default"] or (ZERO if one.endswith("?") else REQUIRED)
        told.fields[name] = found["kind"], absent
        told.meanings[name] = found["meaning"] or ""
    return names


def _common(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for _, body in blocks_of(text, "common"):
        for line in body.splitlines():
            row = _COMMON.fullmatch(line)
            assert row is not None, line
            found |= dict.fromkeys(row["names"].split(", "), row["meaning"])
    return found


def told_values(text: str) -> dict[str, list[str]]:
    """Return the values that the document lists, by type."""
    values: dict[str, list[str]] = {}
    for _, body in blocks_of(text, "values"):
        name = ""
        for line in filter(None, body.splitlines()):
            if found := _TYPE.fullmatch(line):
                name = found[1]
                values[name] = []
            else:
                value = _VALUE.fullmatch(line)
                assert value is not None, line
                values[name].append(value[1])
    return values


class Key(msgspec.Struct):
    """A key of the state, and how its object is written and deleted."""

    key: str
    what: str
    written: str
    deleted: str


def told_keys(text: str) -> list[Key]:
    """Return the keys that the document lists, relative to the state's prefix."""
    found = []
    for part, body in blocks_of(text, "keys"):
        below = "runs/<run id>/" if part == "run" else ""
        written = deleted = ""
        for line in body.splitlines():
            if line.startswith("  "):
                key, what = re.split(r" {2,}", line.strip())
                found.append(Key(below + key, what, written, deleted))
            else:
                written, deleted = line.split(", ")
    return found


def pattern_of(key: str) -> re.Pattern[str]:
    """Return the pattern of keys for a line of the document."""
    wild = {"path": "(?:.*/)?", "number": "[0-9]{20}", "rest": ".+"}
    parts = re.split(r"<([^>]+)>", key)
    names = [wild.get(one, "[^/]+") for one in parts[1::2]]
    text = [re.escape(one) for one in parts[::2]]
    together = zip(text, [*names, ""], strict=True)
    return re.compile("".join(one + two for one, two in together), re.DOTALL)
