"""Options that several commands share; those of a run's fields come from FIELDS."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compactor.errors import InvalidInput
from compactor.settings.fields import FIELDS
from compactor.settings.specs import FieldSpec

SOURCE, DESTINATION, STATE = "s3_source_uri", "s3_destination_uri", "s3_state_uri"
POLICIES = "policies"


def add_common(parser: argparse.ArgumentParser) -> None:
    """``--endpoint-url`` and ``--json``."""
    parser.add_argument(
        "--endpoint-url", metavar="URL", help="S3-compatible endpoint (by default AWS)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document and nothing else"
    )


def add_places(parser: argparse.ArgumentParser, *names: str, optional: bool = False) -> None:
    """Positional URIs: SOURCE and DEST, or one of them."""
    for name in names:
        parser.add_argument(
            name,
            metavar="SOURCE" if name == SOURCE else "DEST",
            nargs="?" if optional else None,
            help=_help(FIELDS[name].meaning),
        )


def add_state(parser: argparse.ArgumentParser) -> None:
    """``--state-uri`` alone, for commands without the other fields."""
    add_named(parser, STATE)


def add_named(parser: argparse.ArgumentParser, *names: str) -> None:
    """Options for these fields alone."""
    for name in names:
        _add_field(parser, FIELDS[name])


def add_fields(parser: argparse.ArgumentParser) -> None:
    """One option for every field of a run's input but SOURCE and DEST."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for spec in FIELDS.values():
        if spec.name in (SOURCE, DESTINATION):
            continue
        if spec.section not in groups:
            groups[spec.section] = parser.add_argument_group(spec.section.lower())
        _add_field(groups[spec.section], spec)


def fields_from(args: argparse.Namespace) -> dict[str, Any]:
    """The fields that were given, as the JSON input has them.

    Raises:
        InvalidInput: a value is not accepted.
    """
    given: dict[str, Any] = {}
    for name, spec in FIELDS.items():
        value = getattr(args, name, None)
        if value is not None:
            given[name] = _value(spec, value) if isinstance(value, str) else value
    return given


def _add_field(parser: argparse._ActionsContainer, spec: FieldSpec) -> None:
    names = ["--" + spec.name.replace("_", "-")]
    if spec.name == STATE:
        names.insert(0, "--state-uri")
    text = f"{spec.meaning} Accepted: {spec.accepted}."
    if spec.default is not None and not isinstance(spec.default, tuple):
        text += f" Default: {spec.default_text}."
    arguments: dict[str, Any] = {"dest": spec.name, "help": _help(text), "default": None}
    if isinstance(spec.default, bool):
        arguments["action"] = argparse.BooleanOptionalAction
    elif isinstance(spec.default, tuple) and spec.name != POLICIES:
        many = "GLOB" if "globs" in spec.accepted else "NAME"
        arguments |= {"action": "append", "metavar": many}
    else:
        arguments["metavar"] = _metavar(spec)
    parser.add_argument(*names, **arguments)


def _rules(spec: FieldSpec, text: str) -> object:
    """Rules as JSON, or of a file with them.

    Raises:
        InvalidInput: it cannot be read, or a rule is not accepted.
    """
    try:
        found = json.loads(text if text.lstrip().startswith("[") else Path(text).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        accepted = f"a JSON file with {spec.accepted} ({error})"
        raise InvalidInput(spec.name, text, accepted) from None
    spec.parse(found)
    return found


def _metavar(spec: FieldSpec) -> str:
    if spec.name == POLICIES:
        return "FILE.json"
    if spec.name.endswith("_uri"):
        return "URI"
    return "N" if spec.accepted.startswith(("a whole number", "a number")) else "VALUE"


def _help(text: str) -> str:
    return text.replace("%", "%%")


def _value(spec: FieldSpec, text: str) -> object:
    """An option's text as the field wants it: as text, else as a number, else as JSON.

    Raises:
        InvalidInput: none of them is accepted.
    """
    if spec.name == POLICIES:
        return _rules(spec, text)
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
