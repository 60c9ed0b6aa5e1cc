"""``python -m compactor_dev.bench``: the entry point of ``make bench``."""

from __future__ import annotations

import sys

from compactor_dev.bench.command import main

if __name__ == "__main__":
    sys.exit(main())
