"""``python -m scripts.benchmark``: what ``make bench`` runs."""

from __future__ import annotations

import sys

from scripts.benchmark.command import main

sys.exit(main())
