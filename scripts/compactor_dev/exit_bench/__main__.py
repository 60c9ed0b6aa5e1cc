"""``python -m compactor_dev.exit_bench``: what ``make exit-bench`` runs."""

from __future__ import annotations

import sys

from compactor_dev.exit_bench.command import main

sys.exit(main())
