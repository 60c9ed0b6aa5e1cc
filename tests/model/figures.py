"""The figures that searches record for the table of ``make proof``."""

from __future__ import annotations

import json
import os
from pathlib import Path

#: True in ``make proof``, which searches the larger starts as well.
IN_PROOF = "S3_COMPACTOR_PROOF_DIR" in os.environ


def keep_figures(directory: Path | None, name: str, states: int) -> None:
    """Record the number of states of a search; 0 for one that is meant to end at a fault."""
    if directory is not None:
        path = directory / "model.json"
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        path.write_text(json.dumps(known | {name: states}), encoding="utf-8")
