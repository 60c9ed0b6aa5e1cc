"""``python -m compactor_cli``: the command line, if ``compactor`` is not on the PATH."""

from __future__ import annotations

import sys

from compactor_cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
