"""``python -m compactor_dev.lake_bench.one_run NAME ENDPOINT INPUT``: a run that can be killed."""

from __future__ import annotations

import json
import sys

from compactor.settings.settings import Settings
from compactor_cli.whole import Machine, run_here


def main() -> int:
    """0 when the run succeeded."""
    name, endpoint_url, given = sys.argv[1:]
    done = run_here(Settings.from_input(json.loads(given)), Machine(2, endpoint_url), name)
    return 0 if done.report is not None and done.report.status == "succeeded" else 1


if __name__ == "__main__":
    sys.exit(main())
