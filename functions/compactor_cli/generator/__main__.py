"""``python -m compactor_cli.generator``: the generator without the rest of the command line."""

from __future__ import annotations

import argparse
import sys

from compactor.errors import CompactorError
from compactor_cli.generator.command import add_arguments, run


def main() -> int:
    """Parse, run, and turn an error into one line and exit code 1."""
    parser = argparse.ArgumentParser(prog="generator", description="Generate log objects.")
    add_arguments(parser)
    try:
        return run(parser.parse_args())
    except CompactorError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
