"""``python -m compactor_dev.query_bench``."""

import sys

from compactor_dev.query_bench.command import main

if __name__ == "__main__":
    sys.exit(main())
