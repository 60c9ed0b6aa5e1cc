"""The real handler, with a stand-in for the table in Glue and for Athena's results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from compactor_tables.handlers import athena_step as real
from tests.statemachine.fake_tables.services import KeptAthena


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """See the real one."""
    kept = KeptAthena.loaded()
    table = SimpleNamespace(metadata=kept.table())
    for name, stand_in in (("load_iceberg", lambda *_: table), ("row_of", kept.row)):
        setattr(real, name, stand_in)
    answer: dict[str, Any] = real.handler(event, context)
    return answer
