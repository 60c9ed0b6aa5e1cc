"""``python -m compactor_cli``: the command line where no ``compactor`` is on the path."""

from __future__ import annotations

import sys

from compactor_cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
