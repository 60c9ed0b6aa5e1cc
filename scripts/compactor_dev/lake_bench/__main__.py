"""``python -m compactor_dev.lake_bench``: what ``make lake-bench`` runs."""

from __future__ import annotations

import sys

from compactor_dev.lake_bench.command import main

sys.exit(main())
