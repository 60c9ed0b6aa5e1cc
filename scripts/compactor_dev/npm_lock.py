"""Takes out of package-lock.json what only says where to send money: a lock has no URLs.

``make lock`` runs it after npm.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LOCK = Path(__file__).resolve().parents[2] / "package-lock.json"


def without_urls(lock: dict[str, Any]) -> dict[str, Any]:
    """The lock without the fields of its packages that hold URLs; npm needs none of them.

    Args:
        lock: the document, as npm writes it.
    """
    packages = {
        name: {field: value for field, value in package.items() if field != "funding"}
        for name, package in lock["packages"].items()
    }
    return {**lock, "packages": packages}


if __name__ == "__main__":
    text = json.dumps(without_urls(json.loads(LOCK.read_text(encoding="utf-8"))), indent=2)
    LOCK.write_text(text + "\n", encoding="utf-8")
