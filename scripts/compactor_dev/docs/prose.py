"""Lines of prose wrap, and how long documents are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compactor_dev.docs.pages import Finding, Page
from compactor_dev.docs.tree import Tree

MOST_CHARACTERS = 100
_URL = re.compile(r"https?://\S+")
#: Words to aim for, by document; the first that matches.
AIMS = (
    (r"README\.md", 600),
    (r"DESIGN\.md", 5_000),
    (r"docs/format\.md", 5_000),
    (r"docs/decisions/.*", 600),
    (r"(CHANGELOG|CONTRIBUTING|SECURITY)\.md", 1_500),
    (r"docs/zoo\.md", 0),
    (r"docs/.*", 2_000),
)


def long_lines(tree: Tree) -> Iterator[Finding]:
    """Lines of prose that are too long; tables, code blocks and URLs are not counted."""
    for page in tree.pages:
        for number, line in page.lines():
            if len(_URL.sub("", line)) > MOST_CHARACTERS and not line.lstrip().startswith("|"):
                yield Finding(
                    page.path, "line", f"longer than {MOST_CHARACTERS} characters", number
                )


def sizes(tree: Tree) -> Iterator[str]:
    """One line a document: its words, and what they should be."""
    for page in sorted(tree.pages, key=_words, reverse=True):
        words, aim = _words(page), _aim(page.path)
        over = f"{words / aim:.1f} times" if aim and words > aim else ""
        yield f"{words:>7,}  {f'{aim:,}' if aim else '-':>6}  {page.path:<36} {over}".rstrip()


def _words(page: Page) -> int:
    return len(page.text.split())


def _aim(path: str) -> int:
    return next((aim for pattern, aim in AIMS if re.fullmatch(pattern, path)), 0)
