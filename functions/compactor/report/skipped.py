"""Why objects are skipped: for each reason, an explanation and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from compactor.model import SkipReason
from compactor.settings.fields import FIELDS

# Reasons that depend on age alone, and so pass with time.
BY_AGE = (SkipReason.TOO_YOUNG, SkipReason.OPEN_PARTITION)
#: Reasons of objects that a later run takes as they are.
WAITING = frozenset({*BY_AGE, SkipReason.TOO_FEW})
# Explanation, then what to do; empty if there is nothing to do, or only time helps.
# {name} is replaced by the value of a setting, {=name value} by how to set one.
_TEXTS: Mapping[SkipReason, tuple[str, str]] = MappingProxyType(
    {
        SkipReason.TOO_YOUNG: ("younger than settle_seconds ({settle_seconds})", ""),
        SkipReason.OPEN_PARTITION: (
            "in a partition younger than open_partition_seconds ({open_partition_seconds})",
            "",
        ),
        SkipReason.TOO_FEW: (
            "in a partition with fewer of them than min_objects ({min_objects})",
            "wait for more, or give {=min_objects 1}",
        ),
        SkipReason.ARCHIVED: (
            "in Glacier or Deep Archive, where nothing can be read",
            "restore them first (aws s3api restore-object), then run again",
        ),
        SkipReason.NOT_INCLUDED: (
            "matched by no pattern of include ({include})",
            "patterns are of keys below the source, and * stands for slashes, too",
        ),
        SkipReason.EXCLUDED: (
            "excluded by exclude ({exclude})",
            "correct exclude if they should be compacted",
        ),
        SkipReason.OWN_STATE: (
            "outputs or records of this program",
            "give a source that no run wrote",
        ),
        SkipReason.HIDDEN: (
            "hidden: a level or name below the source begins with _ or .",
            "spell that out in a pattern of include if it should be compacted",
        ),
        SkipReason.TABLE: (
            "files of a table (Delta, Iceberg, Hudi, Paimon, Spark's sink), whose log names them",
            "compactor tables plan shows what compacting Delta and Iceberg tables brings",
        ),
        SkipReason.REGISTRY: (
            "parts of a registry of container images, which finds them by their keys",
            "",
        ),
        SkipReason.CLOUDTRAIL_DIGEST: (
            "digests of CloudTrail, which hold no events",
            "the events lie below CloudTrail/ of the same account",
        ),
        SkipReason.CLIENT_ENCRYPTED: (
            "encrypted before they came to S3, with an .instruction object beside each",
            "decrypt them first; outputs of them could not be",
        ),
        SkipReason.QUARANTINED: (
            "left alone by an earlier run for what they hold, as its report says",
            "give other settings, or {=retry_quarantined true}",
        ),
        SkipReason.UNPARTITIONED: (
            "above the partitions, or in one whose path is too long",
            "give another depth (now {depth}) or date_format",
        ),
        SkipReason.DEEPER_LEVEL: (
            "in a level below their partition that names a column",
            "give a depth or a date_format that reaches it",
        ),
        SkipReason.COMMITTED: ("compacted already", ""),
        SkipReason.AGAIN: ("delivered again with content that is compacted already", ""),
        SkipReason.EMPTY: ("empty", ""),
        SkipReason.DIRECTORY_MARKER: ("markers of directories, without content", ""),
        SkipReason.GONE: ("gone since their event, or changed", ""),
    }
)
_GIVEN = re.compile(r"\{=(\w+) (\w+)\}")


def why_left(
    reason: SkipReason, settings: Mapping[str, Any], *, typed: bool = False, when: str = ""
) -> tuple[str, str]:
    """Return why objects were skipped, and what to do, which may be empty.

    Args:
        reason: the skip reason.
        settings: of the run, from its report; missing ones have their defaults.
        typed: show settings as command-line options.
        when: when a run takes objects that were skipped for their age; by default, a later run.
    """
    values = {name: _shown(settings.get(name, spec.default)) for name, spec in FIELDS.items()}
    what, way = _TEXTS[reason]
    if reason in BY_AGE:
        # A settled object may be in a partition that is still open.
        ages = [name for name in _AGES if settings.get(name, FIELDS[name].default)]
        given = " and ".join(f"{{={name} 0}}" for name in ages)
        way = f"{when or 'a later run takes them'}, or give {given}"
    way = _GIVEN.sub(lambda one: _given(one[1], one[2], typed=typed), way)
    return what.format_map(values), way.format_map(values)


def hint_of(reason: str) -> str:
    """Return the command for objects of this reason, as the end of a line; usually empty."""
    return f"; {_TEXTS[SkipReason.TABLE][1]}" if reason == SkipReason.TABLE else ""


_AGES = ("settle_seconds", "open_partition_seconds")


def _shown(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _given(name: str, value: str, *, typed: bool) -> str:
    option = f"--{name.replace('_', '-')}"
    if not typed:
        return f"{name}: {value}"
    return option if value == "true" else f"{option} {value}"
