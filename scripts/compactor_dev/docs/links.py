"""Links and anchors resolve, and every page can be reached from README.md."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from compactor_dev.docs.pages import Finding
from compactor_dev.docs.tree import Tree

_SCHEME = re.compile(r"[a-z]+:")


def lost_links(tree: Tree) -> Iterator[Finding]:
    """Relative links to what does not exist."""
    pages = {page.path: page for page in tree.pages}
    for page in tree.pages:
        for link in page.links:
            if _SCHEME.match(link):
                continue
            path, _, anchor = link.partition("#")
            target = _target(page.path, path)
            lost_anchor = anchor and (target not in pages or anchor not in pages[target].anchors)
            if target not in tree.names or lost_anchor:
                yield Finding(page.path, "link", link)


def unreachable(tree: Tree) -> Iterator[Finding]:
    """Pages that no chain of links from README.md leads to."""
    pages = {page.path: page for page in tree.pages}
    seen, todo = {"README.md"}, ["README.md"]
    while todo:
        page = pages.get(todo.pop())
        for link in page.links if page is not None else ():
            target = _target(page.path, link.partition("#")[0]) if page is not None else ""
            if target in pages and target not in seen:
                seen.add(target)
                todo.append(target)
    for path in sorted(pages.keys() - seen):
        yield Finding(path, "unreachable", "no page that README.md leads to links to it")


def _target(page: str, link: str) -> str:
    """The path below the root that a link of a page means."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) if link else page
