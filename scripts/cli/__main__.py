"""``python -m scripts.cli``: the command line where it is not installed."""

from __future__ import annotations

import sys

from scripts.cli import main

if __name__ == "__main__":
    sys.exit(main())
