"""The checks of documents and words: each rule finds what it is for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compactor_dev.docs import allowed
from compactor_dev.docs.__main__ import main
from compactor_dev.docs.commands import lost_commands
from compactor_dev.docs.links import lost_links, unreachable
from compactor_dev.docs.pages import Finding, Page
from compactor_dev.docs.prose import long_lines, sizes
from compactor_dev.docs.references import lost_references
from compactor_dev.docs.spelling import misspelt
from compactor_dev.docs.tree import Tree
from compactor_dev.docs.words import by_package, word_list, wrong_words

MakeTree = Callable[..., Tree]
CODE = {
    "Makefile": "demo: set-up\n\techo\n",
    "functions/compactor/model.py": "settle_seconds = 600\n\n\nclass Format: ...\n",
    "functions/compactor/planning/packing.py": "def pack(): ...\n",
    "scripts/compactor_cli/x.py": 'add_argument("--record")\n',
    "tests/unit/test_plan.py": "def test_young_objects_wait(): ...\n",
}


@pytest.fixture
def make_tree(tmp_path: Path) -> MakeTree:
    """A checkout with a little code and these pages, by path."""

    def make(pages: dict[str, str] | str) -> Tree:
        files = CODE | (pages if isinstance(pages, dict) else {"README.md": pages})
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text, encoding="utf-8")
        return Tree(tmp_path, sorted(files))

    return make


def subjects(findings) -> list[str]:
    return [one.subject for one in findings]


# references


@pytest.mark.parametrize(
    ("span", "rule"),
    [
        ("functions/compactor/gone.py", "path"),
        ("planning/gone.py", "path"),
        ("gone.py", "path"),
        ("tests/unit/", None),
        ("tests/gone/", "path"),
        ("planning/packing.py", None),
        ("packing.py", None),
        ("tests/unit/test_plan.py::test_young_objects_wait", None),
        ("functions/compactor/*/gone.py", None),
        ("compactor.planning.packing", None),
        ("compactor.planning.packing.pack", None),
        ("compactor.planning.gone", "module"),
        ("compactor_cli.gone.x", "module"),
        ("test_young_objects_wait", None),
        ("test_old_objects_wait", "test"),
        ("--record 17", None),
        ("--settle-seconds", None),
        ("--gone", "option"),
        ("settle_seconds: 0", None),
        ("gone_seconds: 0", "name"),
        ("aws s3api restore-object --gone", None),
        ("s3://bucket/gone_seconds/", None),
        ("report.json", None),
    ],
)
def test_a_name_in_a_code_span_must_exist(make_tree: MakeTree, span: str, rule: str | None) -> None:
    found = list(lost_references(make_tree(f"See `{span}`.\n")))
    assert [one.rule for one in found] == ([rule] if rule else [])


def test_names_in_code_blocks_and_prose_are_not_checked(make_tree: MakeTree) -> None:
    assert not list(lost_references(make_tree("gone_seconds\n```\n`gone_seconds`\n```\n")))


# links


def test_links_to_missing_pages_and_anchors_are_found(make_tree: MakeTree) -> None:
    text = (
        "# A `b`: c, d\n[1](docs/a.md) [2](docs/b.md) [3](#a-b-c-d) [4](#gone) [5](docs/a.md#x)\n"
        "[6](docs/a.md#y) [7](https://example.com/gone) ![8](docs/gone.svg)\n"
    )
    tree = make_tree({"README.md": text, "docs/a.md": "## X\n"})
    assert subjects(lost_links(tree)) == ["docs/b.md", "#gone", "docs/a.md#y", "docs/gone.svg"]


def test_anchors_are_made_as_the_pages_show_them(tmp_path: Path) -> None:
    text = (
        '# A `b`: c, d\n## Twice\n## Twice\n```sh\n# a comment\n```\n### Before `clean_up: "x"`\n'
    )
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    page = Page(tmp_path, "page.md")
    assert page.anchors == {"a-b-c-d", "twice", "twice-1", "before-clean_up-x"}


def test_a_page_that_nothing_links_to_is_found(make_tree: MakeTree) -> None:
    pages = {
        "README.md": "[a](docs/a.md)\n",
        "docs/a.md": "[b](decisions/b.md)\n",
        "docs/decisions/b.md": "[back](../a.md)\n",
        "docs/c.md": "[a](a.md)\n",
    }
    assert [one.path for one in unreachable(make_tree(pages))] == ["docs/c.md"]


# commands


@pytest.mark.parametrize(
    ("line", "is_lost"),
    [
        ("compactor ls s3://a/b/ x --json | jq .", False),
        ("compactor ls s3://a/b/ --gone", True),
        ("compactor gone s3://a/b/", True),
        ("make demo ARGS=x", False),
        ("make gone", True),
        ("rm -rf build", True),
    ],
)
def test_what_can_be_copied_must_be_a_command(
    make_tree: MakeTree, line: str, is_lost: bool
) -> None:
    tree = make_tree(f"```sh\n. .venv/bin/activate\n{line}\n```\n")
    assert subjects(lost_commands(tree)) == ([line] if is_lost else [])


@pytest.mark.parametrize(
    ("span", "is_lost"),
    [
        ("compactor verify --deep", False),
        ("compactor verify --shallow", True),
        ("compactor COMMAND --help", False),
        ("make demo", False),
        ("make gone", True),
    ],
)
def test_commands_in_running_text_may_leave_out_their_places(
    make_tree: MakeTree, span: str, is_lost: bool
) -> None:
    assert subjects(lost_commands(make_tree(f"Run `{span}`.\n"))) == ([span] if is_lost else [])


def test_a_page_activates_the_environment_before_its_first_command(make_tree: MakeTree) -> None:
    tree = make_tree("```sh\ncompactor ls s3://a/b/\n```\n")
    assert "no environment" in subjects(lost_commands(tree))[0]


# lines


def test_only_lines_of_prose_are_measured(make_tree: MakeTree) -> None:
    long = "word " * 21
    text = f"{long}\n| {long} |\n```\n{long}\n```\nsee https://example.com/{'x' * 100}\n- {long}\n"
    assert [one.line for one in long_lines(make_tree(text))] == [1, 7]


def test_sizes_compare_words_with_the_aim(make_tree: MakeTree) -> None:
    pages = {"README.md": "word " * 900, "docs/a.md": "word"}
    assert [line.split() for line in sizes(make_tree(pages))] == [
        ["900", "600", "README.md", "1.5", "times"],
        ["1", "2,000", "docs/a.md"],
    ]


# words


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("told", "HEAD told nothing"),
        ("tells", "a name that tells"),
        ("hangs on", "It hangs on the store"),
        ("behind", "listed behind the key"),
        ("anew", "made anew, once more"),
        ("whoever", "Whoever calls"),
        ("nobody", "def test_nobody_reads(): ..."),
        ("is none", "a name that is none"),
        ("go on with", "is gone on with"),
        ("comes about", "How it comes about"),
        ("reckon", "reckoned"),
        ("at once", "def test_two_at_once(): ..."),
        ("way to S3", "the only way to S3"),
        ("goes out", "a request goes out"),
        ("take for", "took it for another"),
        ("mend", "mended"),
        ("plays", "plays schedules"),
        ("version before", "the version before"),
        ("archives", "archives of Spark"),
    ],
)
def test_each_word_of_the_list_is_found_in_code_and_in_documents(
    make_tree: MakeTree, name: str, line: str
) -> None:
    pages = {"README.md": f"{line}\n", "functions/compactor/x.py": f"# {line}\n"}
    found = list(wrong_words(make_tree(pages)))
    assert {one.path for one in found} == set(pages)
    assert {one.subject.partition(":")[0] for one in found} == {name}


def test_the_list_has_an_example_of_each_word() -> None:
    (mark,) = (
        one
        for one in test_each_word_of_the_list_is_found_in_code_and_in_documents.pytestmark  # type: ignore[attr-defined] # pytest sets it
        if one.name == "parametrize"
    )
    assert {name for name, _ in mark.args[1]} == {word.name for word in word_list()[0]}


def test_words_that_only_contain_one_of_the_list_are_not_found(make_tree: MakeTree) -> None:
    text = "foretold commend amended displays archived there is none, None is returned\n"
    assert not list(wrong_words(make_tree(text)))


def test_words_are_summed_up_by_package(make_tree: MakeTree) -> None:
    pages = {"README.md": "told\n", "functions/compactor/x.py": "# told told mended\n"}
    lines = [line.split() for line in by_package(wrong_words(make_tree(pages)))]
    assert lines[:2] == [["3", "functions/compactor"], ["1", "documents"]]
    assert lines[2:] == [["3", "told"], ["1", "mend"]]


def test_every_accepted_phrase_is_still_there_and_has_a_word_of_the_list(repo_root: Path) -> None:
    words, accepted = word_list()
    for path, phrases in accepted.items():
        text = (repo_root / path).read_text(encoding="utf-8")
        for phrase in phrases:
            assert phrase in text
            assert any(word.pattern.search(phrase) for word in words)


# spelling


def test_a_misspelt_word_is_found(make_tree: MakeTree) -> None:
    tree = make_tree("All is well.\nThis was recieved.\n")
    (found,) = misspelt(tree)
    assert (found.path, found.line) == ("README.md", 2)
    assert found.subject.startswith("recieved")


# what is allowed


def test_only_what_is_more_than_allowed_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "allowed.json"
    old = [Finding("a.md", "word", "told", line) for line in (1, 5)]
    assert allowed.write(old, file) == 2
    assert not list(allowed.not_allowed(old, allowed.read(file)))
    assert not list(allowed.not_allowed(old[:1], allowed.read(file)))
    new = [*old, Finding("a.md", "word", "told", 9), Finding("b.md", "word", "told", 1)]
    assert list(allowed.not_allowed(new, allowed.read(file))) == new


def test_without_a_list_nothing_is_allowed(tmp_path: Path) -> None:
    found = [Finding("a.md", "link", "b.md")]
    assert list(allowed.not_allowed(found, allowed.read(tmp_path / "none.json"))) == found


def test_a_violation_is_one_line_with_its_place_and_ends_the_check(
    make_tree: MakeTree, tmp_path: Path, monkeypatch, capsys
) -> None:
    make_tree("# A\n[b](docs/b.md) was told.\n")
    monkeypatch.setattr("compactor_dev.docs.__main__.REPOSITORY", tmp_path)
    monkeypatch.setattr(allowed, "FILE", tmp_path / "allowed.json")
    monkeypatch.setattr("compactor_dev.docs.allowed.read.__defaults__", (allowed.FILE,))
    assert main([]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "README.md: link: docs/b.md",
        "README.md:2: word: told: write reported, shown, logged, returned, named",
    ]
