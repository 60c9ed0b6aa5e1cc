"""Command-line options for the fields of a run, generated from FIELDS."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from compactor.errors import InvalidInput
from compactor.settings.fields import FIELDS
from compactor.settings.specs import FieldSpec

SOURCE, DESTINATION, STATE = "s3_source_uri", "s3_destination_uri", "s3_state_uri"
_ALIASES = {STATE: "--state-uri", "formats": "--format"}


def add_places(parser: argparse.ArgumentParser, *names: str, optional: bool = False) -> None:
    """Add positional URIs: SOURCE, DEST or both."""
    for name in names:
        parser.add_argument(
            name,
            metavar="SOURCE" if name == SOURCE else "DEST",
            nargs="?" if optional else None,
            help=_help(FIELDS[name].meaning),
        )


def add_named(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options for these fields only."""
    for name in names:
        _add_field(parser, FIELDS[name])


def add_fields(parser: argparse.ArgumentParser) -> None:
    """Add an option for every field of a run's input except SOURCE and DEST."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for spec in FIELDS.values():
        if spec.name in (SOURCE, DESTINATION):
            continue
        if spec.section not in groups:
            groups[spec.section] = parser.add_argument_group(spec.section.lower())
        _add_field(groups[spec.section], spec)


def fields_from(args: argparse.Namespace) -> dict[str, Any]:
    """Return the given fields in the form of the JSON input.

    Raises:
        InvalidInput: a value is rejected.
    """
    given: dict[str, Any] = {}
    for name, spec in FIELDS.items():
        value = getattr(args, name, None)
        if value is not None:
            given[name] = value_of(spec, value) if isinstance(value, str) else value
    return given


def _add_field(parser: argparse._ActionsContainer, spec: FieldSpec) -> None:
    names = ["--" + spec.name.replace("_", "-")]
    if spec.name in _ALIASES:
        names.insert(0, _ALIASES[spec.name])
    text = f"{spec.meaning} Accepted: {spec.accepted}."
    if spec.default is not None and not isinstance(spec.default, tuple):
        text += f" Default: {spec.default_text}."
    arguments: dict[str, Any] = {"dest": spec.name, "help": _help(text), "default": None}
    if isinstance(spec.default, bool):
        arguments["action"] = argparse.BooleanOptionalAction
    elif isinstance(spec.default, tuple) and spec.name != "formats":
        many = "GLOB" if "globs" in spec.accepted else "NAME"
        arguments |= {"action": "append", "metavar": many}
    else:
        arguments["metavar"] = _metavar(spec)
    parser.add_argument(*names, **arguments)


def _metavar(spec: FieldSpec) -> str:
    if spec.name.endswith("_uri"):
        return "URI"
    return "N" if spec.accepted.startswith(("a whole number", "a number")) else "VALUE"


def _help(text: str) -> str:
    return text.replace("%", "%%")


def value_of(spec: FieldSpec, text: str) -> object:
    """Convert an option's text to what the field accepts: text, else a number, else JSON.

    Raises:
        InvalidInput: the field accepts none of them.
    """
    try:
        spec.parse(text)
    except InvalidInput as error:
        for kind in _KINDS:
            try:
                value = kind(text)
                spec.parse(value)
            except (ValueError, InvalidInput, RecursionError):
                continue
            return value
        raise error from None
    return text


_KINDS: tuple[Callable[[str], object], ...] = (int, float, json.loads)
