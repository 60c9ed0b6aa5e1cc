"""Selects requirements with their dependencies from a lock, pinned and hashed.

Comments of a lock name the dependents of each requirement (``# via python-dateutil``, or a list
below ``# via``), as ``uv pip compile`` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from compactor.errors import InvalidInput

_HEAD = re.compile(r"[a-z0-9][a-z0-9._-]*(?===)")
_WANTED_BY = re.compile(r"^ +# +(?:via +)?([A-Za-z0-9][\w.-]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Requirement:
    text: str
    wanted_by: frozenset[str]


def select(lock: str, roots: Collection[str], without: Collection[str] = ()) -> str:
    """Return the lines of a lock for ``roots`` and their dependencies.

    Args:
        lock: the content of a lock.
        roots: names in the lock, such as ``zlib-ng``.
        without: names that the target provides: left out, with dependencies only they need.

    Raises:
        InvalidInput: the lock has no such requirement.
    """
    requirements = _parse(lock)
    for name in (*roots, *without):
        if name not in requirements:
            raise InvalidInput("requirement", name, "a name in the lock")
    kept = set(roots) - set(without)
    while more := {
        name
        for name, requirement in requirements.items()
        if name not in kept and name not in without and requirement.wanted_by & kept
    }:
        kept |= more
    return "".join(requirements[name].text for name in requirements if name in kept)


def _parse(lock: str) -> dict[str, _Requirement]:
    requirements = {}
    for text in re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE):
        head = _HEAD.match(text)
        if head:
            wanted_by = frozenset(_WANTED_BY.findall(text))
            requirements[head[0]] = _Requirement(text, wanted_by)
    return requirements
