"""The JSON form of a run's input: unknown names, and names that stand for others."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import cast

from compactor.errors import InvalidInput
from compactor.settings.fields import FIELDS
from compactor.settings.specs import FieldSpec
from compactor.settings.units import whole_days
from compactor.settings.windows import MAX_WINDOW_DAYS

#: The plain form of formats: a name for all objects.
PLAIN_FORMAT = "format"
#: The window as a number of days before today.
DURATION = "duration"
_DAYS = whole_days(1, MAX_WINDOW_DAYS)
# What replaces settings that no longer exist.
_REPLACED = {
    "clean_up": ["delete_after"],
    "retention_days": ["delete_after"],
    "open_partition_seconds": ["settle_seconds"],
    **{name: ["window"] for name in ("start", "end")},
}


def wire_fields(given: object) -> Mapping[str, object]:
    """Return the fields of an input by the names of FIELDS.

    Raises:
        InvalidInput: it is no object, or has an unknown field.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput("input", given, "a JSON object with the fields of a run")
    if "detail-type" in given and "detail" in given:
        raise InvalidInput(
            "detail-type",
            given["detail-type"],
            "the fields of a run themselves, not an EventBridge event around them: give the"
            " rule's target an input of its own",
        )
    for name, value in given.items():
        if name not in FIELDS and name not in (PLAIN_FORMAT, DURATION):
            near = _REPLACED.get(name) or get_close_matches(str(name), FIELDS, n=1)
            known = f"did you mean {near[0]}?" if near else f"known are {', '.join(FIELDS)}"
            accepted = f"no such field; {known}"
            raise InvalidInput(str(name), value, accepted)
    return _with_window(_with_plain_format(cast(Mapping[str, object], given)))


def _with_plain_format(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields with ``format`` as ``formats``."""
    if PLAIN_FORMAT not in fields:
        return fields
    plain = fields[PLAIN_FORMAT]
    if "formats" in fields:
        raise InvalidInput(PLAIN_FORMAT, plain, "either format or formats")
    if not isinstance(plain, str):
        raise InvalidInput(PLAIN_FORMAT, plain, "the name of a format")
    return {name: value for name, value in fields.items() if name != PLAIN_FORMAT} | {
        "formats": plain
    }


def _with_window(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields with ``duration`` as ``window``."""
    days = fields.get(DURATION)
    if days is not None and fields.get("window") is not None:
        raise InvalidInput(DURATION, days, "either duration or window")
    others = {name: value for name, value in fields.items() if name != DURATION}
    if days is None:
        return others
    try:
        return others | {"window": f"{_DAYS.read(days)}d"}
    except ValueError:
        raise InvalidInput(DURATION, days, _DAYS.accepted) from None


def default_of(spec: FieldSpec) -> object:
    """Return the value of a field that is absent.

    Raises:
        InvalidInput: the field is required.
    """
    if spec.required:
        raise InvalidInput(spec.name, None, f"{spec.accepted} (the field is required)")
    return spec.default
