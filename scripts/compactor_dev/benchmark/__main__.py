"""``python -m compactor_dev.benchmark``: what ``make bench`` runs."""

from __future__ import annotations

import sys

from compactor_dev.benchmark.command import main

sys.exit(main())
