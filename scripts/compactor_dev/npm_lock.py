"""Removes funding information, the only URLs, from package-lock.json.

``make lock`` runs it after npm.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LOCK = Path(__file__).resolve().parents[2] / "package-lock.json"


def without_urls(lock: dict[str, Any]) -> dict[str, Any]:
    """Return the lock without the funding fields of its packages, which npm does not need.

    Args:
        lock: the document, written by npm.
    """
    packages = {
        name: {field: value for field, value in package.items() if field != "funding"}
        for name, package in lock["packages"].items()
    }
    return {**lock, "packages": packages}


if __name__ == "__main__":
    text = json.dumps(without_urls(json.loads(LOCK.read_text(encoding="utf-8"))), indent=2)
    LOCK.write_text(text + "\n", encoding="utf-8")
