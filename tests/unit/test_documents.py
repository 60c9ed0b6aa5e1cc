"""Links in the documents lead somewhere, and commands in them are commands of ours."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from compactor_cli.commands import COMMANDS, build_parser

REPOSITORY = Path(__file__).resolve().parents[2]
DECISIONS = REPOSITORY / "docs" / "decisions"
PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), *DECISIONS.glob("*.md")])
NAMES = [page.relative_to(REPOSITORY).as_posix() for page in PAGES]
# What a user types; DESIGN.md, CHANGELOG.md and decisions also name what is no longer there.
TYPED = [
    page
    for page in PAGES
    if page.name not in {"DESIGN.md", "CHANGELOG.md"} and page.parent != DECISIONS
]

_FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_INLINE = re.compile(r"`([^`\n]+)`")
_TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)


def prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in _HEADING.findall(prose(page)):
        anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        number = sum(re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", one) is not None for one in found)
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def in_blocks() -> list[str]:
    """Every line of ``sh`` blocks."""
    return sorted(
        {
            line
            for page in TYPED
            for language, block in _FENCED.findall(page.read_text(encoding="utf-8"))
            if language == "sh"
            for line in block.replace("\\\n", " ").splitlines()
            if line.strip()
        }
    )


def in_text(program: str) -> list[str]:
    """Every command in running text."""
    named = {one for page in TYPED for one in _INLINE.findall(prose(page))}
    return sorted(one for one in named if one.startswith(f"{program} ") and "COMMAND" not in one)


def lines_of(program: str) -> list[str]:
    return [line for line in in_blocks() if line.startswith(f"{program} ")]


def arguments(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    end = min((words.index(sign) for sign in ("|", ">") if sign in words), default=len(words))
    return words[1:end]


def accepted(words: list[str]) -> bool:
    try:
        return build_parser(words).parse_args(words).command in COMMANDS
    except SystemExit as ended:
        # 0 after --help; anything else is what a user would be refused.
        return not ended.code


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_relative_link_and_anchor_exists(page):
    lost = []
    for link in _LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert not lost


def test_anchors_are_made_as_the_pages_show_them(tmp_path):
    page = tmp_path / "page.md"
    text = (
        '# A `b`: c, d\n## Twice\n## Twice\n```sh\n# a comment\n```\n### Before `clean_up: "x"`\n'
    )
    page.write_text(text, encoding="utf-8")
    assert anchors(page) == {"a-b-c-d", "twice", "twice-1", "before-clean_up-x"}


def test_every_page_of_docs_is_linked_from_the_readme(repo_root):
    linked = set(_LINK.findall((repo_root / "README.md").read_text(encoding="utf-8")))
    pages = [*repo_root.glob("docs/*.md"), DECISIONS / "README.md"]
    assert {page.relative_to(repo_root).as_posix() for page in pages} <= linked


def test_every_decision_is_in_the_index_under_its_title():
    titles = {
        page.name: _HEADING.findall(page.read_text(encoding="utf-8"))[0]
        for page in DECISIONS.glob("[0-9]*.md")
    }
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(\d{4})\]\((\S+)\) (.+)$", index, re.MULTILINE)
    assert {name: f"{number}. {title}" for number, name, title in listed} == titles


@pytest.mark.parametrize("page", TYPED, ids=[page.name for page in TYPED])
def test_a_page_activates_the_environment_before_its_first_command(page):
    blocks = [
        text for kind, text in _FENCED.findall(page.read_text(encoding="utf-8")) if kind == "sh"
    ]
    typed = "".join(blocks)
    first = re.search("^compactor ", typed, re.MULTILINE)
    there = re.compile(r"^(\. \.venv/bin/activate|pip install dist/)", re.MULTILINE)
    assert first is None or there.search(typed, 0, first.start())


@pytest.mark.parametrize("line", lines_of("compactor"))
def test_every_command_that_can_be_copied_is_one_the_parser_takes(line):
    assert accepted(arguments(line))


@pytest.mark.parametrize("line", in_text("compactor"))
def test_every_command_in_running_text_is_one_the_parser_takes_with_its_places(line):
    words = arguments(line)
    places = ["s3://a/b/", "s3://c/d/"]
    assert any(accepted([*words, *places[:count]]) for count in range(3))


@pytest.mark.parametrize("line", [*lines_of("make"), *in_text("make")])
def test_every_make_target_in_the_documents_exists(line, repo_root):
    targets = set(_TARGET.findall((repo_root / "Makefile").read_text(encoding="utf-8")))
    assert arguments(line)[0] in targets


def test_sh_blocks_hold_nothing_but_what_is_checked():
    known = re.compile(
        r"(git clone <repository>|cd s3-compactor|compactor|make|export"
        r"|pip install dist/s3_compactor-\*\.whl"
        r"|\. \.venv/bin/activate)(\s|$)"
    )
    assert len(in_blocks()) > 30
    assert [line for line in in_blocks() if not known.match(line)] == []
