"""Words that this project does not use, and what it says instead: words.toml."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from compactor_dev.docs.pages import Finding
from compactor_dev.docs.tree import Tree

_LIST = Path(__file__).with_name("words.toml")
# An underscore divides words in names.
_BEGIN = r"(?<![A-Za-z])"
# The list itself, and the tests of it.
_NOT_READ = ("scripts/compactor_dev/docs/", "tests/unit/test_docs_check.py")
_INLINE_CODE = re.compile(r"`[^`]*`")
_NOT_PROSE = ("tests/zoo/", "tests/hostile/", "tests/state/", "docs/zoo.md")


class Word(NamedTuple):
    """One word of the list.

    Attributes:
        name: of the entry.
        pattern: finds it, also in names of identifiers.
        instead: what to write.
    """

    name: str
    pattern: re.Pattern[str]
    instead: str


@cache
def word_list() -> tuple[tuple[Word, ...], Mapping[str, tuple[str, ...]]]:
    """The words; and by file the phrases in which one is meant as it stands."""
    given = tomllib.loads(_LIST.read_text(encoding="utf-8"))
    words = tuple(
        Word(
            name,
            re.compile(
                rf"{_BEGIN}(?:{one['find'].replace(' ', '[ _]')})(?![A-Za-z])", re.IGNORECASE
            ),
            one["instead"],
        )
        for name, one in given["words"].items()
    )
    return words, {file: tuple(phrases) for file, phrases in given["accepted"].items()}


@cache
def _any_word() -> re.Pattern[str]:
    """Most lines have none of the words: one look at them is enough."""
    every = "|".join(word.pattern.pattern.removeprefix(_BEGIN) for word in word_list()[0])
    return re.compile(f"{_BEGIN}(?:{every})", re.IGNORECASE)


def wrong_words(tree: Tree) -> Iterator[Finding]:
    """Every use in documents and code that is not accepted."""
    texts = {page.path: page.text for page in tree.pages}
    texts |= {
        one: text
        for one, text in tree.code.items()
        if one.endswith((".py", ".json", ".html", ".j2"))
    }
    for path, text in sorted(texts.items()):
        if not path.startswith((*_NOT_READ, *_NOT_PROSE)):
            yield from _in_text(path, text)


def _in_text(path: str, text: str) -> Iterator[Finding]:
    words, accepted = word_list()
    for number, line in _suspicious(text):
        # A page has to call a module by its name, which is checked where the module is.
        shown = _INLINE_CODE.sub("", line) if path.endswith(".md") else line
        for phrase in accepted.get(path, ()):
            shown = shown.replace(phrase, "")
        for word in words:
            for _ in word.pattern.findall(shown):
                yield Finding(path, "word", f"{word.name}: write {word.instead}", number)


def _suspicious(text: str) -> Iterator[tuple[int, str]]:
    """The lines with a word of the list, and their numbers: one look at the text, not at each."""
    end, number = 0, 1
    for match in _any_word().finditer(text):
        if match.start() < end:
            continue
        number += text.count("\n", end, match.start())
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.start())
        end = len(text) if end < 0 else end
        yield number, text[start:end]


def by_package(findings: Iterable[Finding]) -> Iterator[str]:
    """How often each word stands in each package: one line a package, one a word."""
    packages: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for one in findings:
        parts = one.path.split("/")
        is_page = one.path.endswith(".md")
        deep = 2 if parts[0] in {"functions", "scripts", "spark"} else 1
        packages["documents" if is_page else "/".join(parts[:deep])] += 1
        words[one.subject.partition(":")[0]] += 1
    for name, count in (*packages.most_common(), *words.most_common()):
        yield f"{count:>6,}  {name}"
