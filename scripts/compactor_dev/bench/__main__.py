"""``python -m compactor_dev.bench``: the command that ``make bench`` runs."""

from __future__ import annotations

import sys

from compactor_dev.bench.command import main

if __name__ == "__main__":
    sys.exit(main())
