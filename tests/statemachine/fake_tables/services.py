"""Glue and Athena's answers for the real handlers, over a table that is kept in a file."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compactor.s3.store import S3Store, make_client
from compactor.settings.tables import TableAddress
from tests.support.athena_tables import MORE_OPTIMIZE, MORE_VACUUM, FakeAthena

ATHENA_WORLD = "ATHENA_WORLD"
_KEPT = (
    "snapshots",
    "properties",
    "may_delete",
    "reasons",
    "counts",
    "sent",
    "ended",
    "made",
    "refs",
)


class KeptAthena(FakeAthena):
    """One whose table is kept in a file between calls of several processes."""

    @classmethod
    def loaded(cls) -> KeptAthena:
        told = json.loads(Path(os.environ[ATHENA_WORLD]).read_text(encoding="utf-8"))
        return cls(S3Store(make_client()), **told)  # type: ignore[arg-type]  # a store as good

    def save(self) -> None:
        told = {name: getattr(self, name) for name in _KEPT}
        Path(os.environ[ATHENA_WORLD]).write_text(json.dumps(told), encoding="utf-8")


def new_world(path: Path, store: Any, **more: Any) -> None:
    """A table of two snapshots, one of which is old."""
    made = FakeAthena(store, **more)
    made.add_snapshot(time.time() - 30 * 86_400)
    made.add_snapshot(time.time() - 60)
    path.write_text(json.dumps({name: getattr(made, name) for name in _KEPT}), encoding="utf-8")


def optimizers_on(table: TableAddress) -> Sequence[str]:
    return ["compaction"] if "owned" in table.text else []


MORE = {"OPTIMIZE": [MORE_OPTIMIZE, MORE_OPTIMIZE], "VACUUM": [MORE_VACUUM]}
