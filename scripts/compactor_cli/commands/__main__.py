"""``python -m compactor_cli.commands``: the command line where it is not installed."""

from __future__ import annotations

import sys

from compactor_cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
