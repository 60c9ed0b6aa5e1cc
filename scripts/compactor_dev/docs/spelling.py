"""Misspelt words, by codespell; pyproject.toml says which words are right."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

from compactor_dev.docs.pages import Finding
from compactor_dev.docs.tree import Tree

_LINE = re.compile(r"^(?:\./)?(.+?):(\d+): (.+)$")
_SUFFIXES = (".py", ".md", ".json", ".sh", ".toml", ".html", "Makefile")
_NOT_READ = (
    "package-lock.json",
    "scripts/compactor_dev/docs/allowed.json",
    "tests/golden/",
    "tests/hostile/",
    "tests/unit/test_docs_check.py",
    "tests/zoo/",
)


def misspelt(tree: Tree) -> Iterator[Finding]:
    """Words that codespell knows a better spelling of.

    Raises:
        OSError: codespell is not installed.
    """
    files = [one for one in tree.files if one.endswith(_SUFFIXES) and not one.startswith(_NOT_READ)]
    command = [sys.executable, "-m", "codespell_lib", "--", *files]
    done = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=False)
    if done.stderr and not done.stdout:
        raise OSError(f"codespell: {done.stderr.strip()}")
    for match in filter(None, map(_LINE.match, done.stdout.splitlines())):
        yield Finding(match[1], "spelling", match[3], int(match[2]))
