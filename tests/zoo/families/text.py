"""Small pieces that many kinds are written with."""

from __future__ import annotations

import json
from typing import Any

from tests.zoo.kinds import Verdict, kind

JOINED, LEFT, EITHER = Verdict.JOINED, Verdict.LEFT, Verdict.EITHER
__all__ = ["EITHER", "JOINED", "LEFT", "js", "kind", "spaced"]


def js(**members: Any) -> str:
    """An object on one line without blanks, as most software writes it."""
    return json.dumps(members, separators=(",", ":"))


def spaced(**members: Any) -> str:
    """An object on one line as Python writes it."""
    return json.dumps(members)
