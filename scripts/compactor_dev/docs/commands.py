"""What can be copied from a page is a command that our parsers and the Makefile take."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from compactor.errors import InvalidInput
from compactor_cli.commands import COMMANDS, build_parser
from compactor_cli.jobs import JOB_FILE, save_job
from compactor_dev.docs.pages import Finding, Page
from compactor_dev.docs.tree import Tree

# These also name what is no longer there.
_NOT_TYPED = frozenset({"DESIGN.md", "CHANGELOG.md"})
_PLACES = ("s3://logs/raw/", "s3://lake/compacted/")
_URIS = dict(zip(("SOURCE", "DEST"), _PLACES, strict=True))
# The job that documents name.
_JOB = "logs"
_JOB_FIELDS = dict(zip(("s3_source_uri", "s3_destination_uri"), _PLACES, strict=True))
_KNOWN = re.compile(
    r"(git clone <repository>|cd s3-compactor|compactor|make|export"
    r"|pip install (\"\$\(echo )?dist/s3_compactor-\*\.whl\S*|uvx|podman|helm|kubectl"
    r"|\. \.venv/bin/activate)(\s|$)"
)
_COMMAND = re.compile(r"^compactor ", re.MULTILINE)
_ACTIVATED = re.compile(r"^(\. \.venv/bin/activate|pip install |podman run )", re.MULTILINE)


def lost_commands(tree: Tree) -> Iterator[Finding]:
    """Commands that would be refused."""
    for page in tree.pages:
        typed = page.path not in _NOT_TYPED and not page.path.startswith("docs/decisions/")
        if typed:
            yield from _in_blocks(page, tree)
        for span in dict.fromkeys(page.spans):
            if span.startswith("make ") and arguments(span)[0] not in tree.targets:
                yield Finding(page.path, "target", span)
            is_command = span.startswith("compactor ") and "COMMAND" not in span
            if typed and is_command and not _accepted_with_places(span):
                yield Finding(page.path, "command", span)


def _in_blocks(page: Page, tree: Tree) -> Iterator[Finding]:
    """What ``sh`` blocks have."""
    blocks = "".join(text for language, text in page.blocks if language == "sh")
    first = _COMMAND.search(blocks)
    if first is not None and not _ACTIVATED.search(blocks, 0, first.start()):
        yield Finding(page.path, "command", "no environment is activated before the first command")
    for line in filter(str.strip, blocks.replace("\\\n", " ").splitlines()):
        is_lost = not _KNOWN.match(line)
        if line.startswith("compactor "):
            is_lost = not accepted(arguments(line))
        elif line.startswith("make "):
            is_lost = arguments(line)[0] not in tree.targets
        if is_lost:
            yield Finding(page.path, "command", line)


def arguments(line: str) -> list[str]:
    """The words behind the program, as far as it gets them."""
    words = [_URIS.get(word, word) for word in shlex.split(line, comments=True)]
    end = min((words.index(sign) for sign in ("|", ">") if sign in words), default=len(words))
    return words[1:end] or [""]


def accepted(words: list[str]) -> bool:
    """Whether our parser takes these words."""
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            if _JOB in words[1:]:
                file = Path(stack.enter_context(TemporaryDirectory())) / JOB_FILE
                save_job(file, _JOB, _JOB_FIELDS)
                words = [*words, "--job-file", str(file)]
            return build_parser(words).parse_args(words).command in COMMANDS
    except InvalidInput:
        return False
    except SystemExit as ended:
        # 0 after --help; anything else is what a user would be refused.
        return not ended.code


def _accepted_with_places(span: str) -> bool:
    """Running text may leave out SOURCE and DEST."""
    words = arguments(span)
    return any(accepted([*words, *_PLACES[:count]]) for count in range(3))
