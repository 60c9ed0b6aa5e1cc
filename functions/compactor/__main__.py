"""``python -m compactor``: the command line, if it is installed with the core."""

from __future__ import annotations

import sys

from compactor_cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
