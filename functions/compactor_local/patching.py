"""Replaces parts of moto, and fails if the part does not exist."""

from __future__ import annotations

from typing import Any

from compactor_local.model import EngineError


def replace(owner: Any, name: str, part: Any) -> Any:
    """Replace an attribute of a class or module by ``part``; returns the original.

    Raises:
        EngineError: there is no such attribute, as moto is not the pinned version.
    """
    if not hasattr(owner, name):
        raise EngineError(f"{owner.__name__} has no {name}: install the pinned version of moto")
    before = getattr(owner, name)
    setattr(owner, name, part)
    return before
