"""The rules of :mod:`compactor.settings.policies`, as maintenance knows them."""

from __future__ import annotations

from compactor.settings.policies import (
    ENGINES,
    RULE_FIELDS,
    USUAL,
    Matched,
    Policies,
    Rule,
    matches,
    read_policies,
)
from compactor.settings.schedules import QuietHours

__all__ = [
    "ENGINES",
    "RULE_FIELDS",
    "USUAL",
    "Matched",
    "Policies",
    "QuietHours",
    "Rule",
    "matches",
    "read_policies",
]
