"""The files of the checkout, and the names that its code has."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cached_property
from pathlib import Path

from compactor_dev.docs.pages import Page

CODE_SUFFIXES = (
    ".py",
    ".json",
    ".sh",
    ".toml",
    ".html",
    ".j2",
    ".css",
    ".js",
    ".in",
    ".txt",
    ".cfg",
)
_CODE = ("functions", "scripts", "spark", "cdk", "statemachine", "tests", ".ci")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTION = re.compile(r"""["'](--[a-z][a-z0-9-]*)""")
_TEST = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)


class Tree:
    """What is in the checkout.

    Args:
        root: of the checkout.
        files: paths below it; by default what git has, or would.
    """

    def __init__(self, root: Path, files: list[str] | None = None) -> None:
        self.root = root
        self.files = _listed(root) if files is None else files

    @cached_property
    def names(self) -> frozenset[str]:
        """Files, and the directories above them."""
        above = {str(one) for file in self.files for one in Path(file).parents}
        return frozenset(self.files) | above

    @cached_property
    def pages(self) -> list[Page]:
        """The documents."""
        return [
            Page(self.root, one)
            for one in self.files
            if one.endswith(".md") and (one.startswith("docs/") or "/" not in one)
        ]

    @cached_property
    def code(self) -> dict[str, str]:
        """The text of each file of code and configuration, by its path."""
        return {
            one: (self.root / one).read_text(encoding="utf-8", errors="replace")
            for one in self.files
            if one.split("/")[0] in _CODE or "/" not in one
            if one.endswith(CODE_SUFFIXES) or one.endswith("Makefile")
            # It names what is missing.
            if one != "scripts/compactor_dev/docs/allowed.json"
            if not one.endswith("package-lock.json") and not one.startswith("requirements")
        }

    @cached_property
    def words(self) -> frozenset[str]:
        """Every identifier in the code."""
        return frozenset(word for text in self.code.values() for word in _WORD.findall(text))

    @cached_property
    def options(self) -> frozenset[str]:
        """Every option that some program of the checkout takes, as its code spells it."""
        found = (_OPTION.findall(text) for one, text in self.code.items() if one.endswith(".py"))
        return frozenset(option for options in found for option in options)

    @cached_property
    def tests(self) -> frozenset[str]:
        """Names of tests, and of their modules."""
        tests = {one: text for one, text in self.code.items() if one.startswith("tests/")}
        functions = {name for text in tests.values() for name in _TEST.findall(text)}
        return frozenset(functions | {Path(one).stem for one in tests})

    @cached_property
    def targets(self) -> frozenset[str]:
        """Targets of the Makefile."""
        text = self.code.get("Makefile", "")
        return frozenset(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


def _listed(root: Path) -> list[str]:
    """What git tracks or would; without git, all that is not hidden."""
    git = shutil.which("git")
    if git is not None:
        command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            return [one for one in listed.stdout.split("\0") if one and (root / one).is_file()]
    paths = (one.relative_to(root) for one in root.rglob("*") if one.is_file())
    return [
        str(one)
        for one in paths
        if one.parts[0] == ".ci" or not one.parts[0].startswith(".")
        if one.parts[0] not in {"build", "node_modules", "dist", "cdk.out"}
        if "__pycache__" not in one.parts
    ]
