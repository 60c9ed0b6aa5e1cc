"""``python -m compactor_dev.docs``: check the documents and the words of the code.

``--update-allowed`` allows what is there now; ``--sizes`` prints the length of the documents;
``--words`` prints how often each unwanted word stands where.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from compactor_dev import REPOSITORY
from compactor_dev.docs import allowed
from compactor_dev.docs.commands import lost_commands
from compactor_dev.docs.links import lost_links, unreachable
from compactor_dev.docs.pages import Finding
from compactor_dev.docs.prose import long_lines, sizes
from compactor_dev.docs.references import lost_references
from compactor_dev.docs.spelling import misspelt
from compactor_dev.docs.tree import Tree
from compactor_dev.docs.words import by_package, wrong_words

CHECKS = (
    lost_links,
    unreachable,
    lost_references,
    lost_commands,
    long_lines,
    wrong_words,
    misspelt,
)
_SHOWN = 50


def findings(tree: Tree) -> Iterator[Finding]:
    """All violations, by all checks."""
    for check in CHECKS:
        yield from check(tree)


def main(words: list[str]) -> int:
    """Run the checks, or print figures; 1 where there is a violation that is not allowed."""
    parser = argparse.ArgumentParser(prog="python -m compactor_dev.docs", description=__doc__)
    parser.add_argument("--update-allowed", action="store_true")
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--words", nargs="*", metavar="PATH")
    args = parser.parse_args(words)
    tree = Tree(REPOSITORY)
    if args.sizes:
        print("  words     aim")
        print(*sizes(tree), sep="\n")
        return 0
    if args.words is not None:
        return _show_words(tree, tuple(args.words))
    if args.update_allowed:
        print(f"{allowed.write(findings(tree)):,} violations are allowed now: {allowed.FILE}")
        return 0
    found = sorted(allowed.not_allowed(findings(tree), allowed.read()))
    for one in found[:_SHOWN]:
        print(one.text, file=sys.stderr)
    if len(found) > _SHOWN:
        print(f"and {len(found) - _SHOWN:,} more", file=sys.stderr)
    return 1 if found else 0


def _show_words(tree: Tree, paths: tuple[str, ...]) -> int:
    """Print the words of some paths, one a line; without paths, sums by package and word."""
    found = list(wrong_words(tree))
    lines = (
        (one.text for one in found if one.path.startswith(paths)) if paths else by_package(found)
    )
    print(*lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
