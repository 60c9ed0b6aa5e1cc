"""A page of the documents, taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(r"^\s*(```|~~~)")
_FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_INLINE = re.compile(r"`([^`\n]+)`")


class Finding(NamedTuple):
    """One violation.

    Attributes:
        path: of the file, below the root.
        rule: the name of the check.
        subject: what is wrong; the same text for the same violation.
        line: where, from 1; 0 where it has no line.
    """

    path: str
    rule: str
    subject: str
    line: int = 0

    @property
    def text(self) -> str:
        """For a person."""
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.rule}: {self.subject}"


class Page:
    """A Markdown page.

    Args:
        root: of the repository.
        path: of the page, below it.
    """

    def __init__(self, root: Path, path: str) -> None:
        self.root, self.path = root, path
        self.text = (root / path).read_text(encoding="utf-8")

    @cached_property
    def prose(self) -> str:
        """The text without its code blocks."""
        return _FENCED.sub("", self.text)

    @cached_property
    def blocks(self) -> list[tuple[str, str]]:
        """Language and text of each code block."""
        return _FENCED.findall(self.text)

    @cached_property
    def anchors(self) -> set[str]:
        """The anchors of the headings, as GitHub makes them."""
        found: set[str] = set()
        for heading in _HEADING.findall(self.prose):
            anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
            number = sum(
                re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", one) is not None for one in found
            )
            found.add(f"{anchor}-{number}" if number else anchor)
        return found

    @cached_property
    def links(self) -> list[str]:
        """The target of each link and picture."""
        return _LINK.findall(self.prose)

    @cached_property
    def spans(self) -> list[str]:
        """The text of each inline code span."""
        return _INLINE.findall(self.prose)

    def lines(self) -> Iterator[tuple[int, str]]:
        """The lines outside of code blocks, with their numbers from 1."""
        fenced = False
        for number, line in enumerate(self.text.splitlines(), 1):
            if _FENCE.match(line):
                fenced = not fenced
            elif not fenced:
                yield number, line
