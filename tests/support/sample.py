"""Which part of many generated cases ``make test`` runs; ``make proof`` runs all.

Always the same one, so that a red build is red again, and a green one says something of the change.
"""

from __future__ import annotations

import os

#: A number that it has plays the part of that number, of a million.
VARIABLE = "COMPACTOR_SAMPLE"


def sample() -> int:
    """The number of the part to play; 0 unless somebody asks for another."""
    return int(os.environ.get(VARIABLE, "0"))
