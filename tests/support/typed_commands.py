"""Which command lines the command line's parser accepts."""

from __future__ import annotations

import contextlib
import io

from compactor.errors import InvalidInput
from compactor_cli.commands import COMMANDS, build_parser


def accepted(words: list[str]) -> bool:
    """Whether the parser accepts these arguments."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            return build_parser(words).parse_args(words).command in COMMANDS
    except InvalidInput:
        return False
    except SystemExit as ended:
        # 0 after --help; anything else is what a user would be refused.
        return not ended.code
