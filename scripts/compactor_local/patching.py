"""Replacing a part of moto, loudly where that part is no longer there."""

from __future__ import annotations

from typing import Any

from compactor_local.model import EngineError


def replace(owner: Any, name: str, part: Any) -> Any:
    """Put ``part`` in the place of an attribute of a class or module; returns what was there.

    Raises:
        EngineError: there is no such attribute: another version of moto than the pinned one.
    """
    if not hasattr(owner, name):
        raise EngineError(f"{owner.__name__} has no {name}: install the pinned version of moto")
    before = getattr(owner, name)
    setattr(owner, name, part)
    return before
