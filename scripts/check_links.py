"""Check that relative links and anchors of the documents resolve."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\((?![a-z]+:)([^)\s#]*)#?([^)\s]*)\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them; repeated ones are numbered."""
    names: list[str] = []
    for heading in _HEADING.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        repeats = names.count(name)
        names += [name, f"{name}-{repeats}"] if repeats else [name]
    return set(names)


def lost_links(root: Path) -> Iterator[str]:
    """Yield each link to a file or an anchor that does not exist."""
    for page in (*sorted(root.glob("*.md")), *sorted(root.glob("docs/**/*.md"))):
        for path, anchor in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
            target = page.parent / path if path else page
            is_page = target.suffix == ".md" and target.is_file()
            if not target.exists() or (anchor and not (is_page and anchor in anchors(target))):
                yield f"{page.relative_to(root)}: {path}{'#' + anchor if anchor else ''}"


if __name__ == "__main__":
    sys.exit("\n".join(lost_links(ROOT)) or 0)
