"""Which sample of many generated cases ``make test`` runs; ``make proof`` runs all.

It is always the same one, so that results are repeatable and depend only on the change.
"""

from __future__ import annotations

import os

#: Environment variable with the number of another sample to run, of a million.
VARIABLE = "COMPACTOR_SAMPLE"


def sample() -> int:
    """Return the number of the sample to run; 0 by default."""
    return int(os.environ.get(VARIABLE, "0"))
