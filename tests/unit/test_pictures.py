"""The pictures of docs/: small, of screens and pages that are named, and shown somewhere."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from compactor_cli.commands import COMMANDS
from compactor_dev.pictures import MOST_BYTES, PICTURES, SCREENS, SHOTS
from compactor_dev.terminal import CommandFailed, as_svg, run_in_terminal

SVG = "{http://www.w3.org/2000/svg}"
NAMES = {one.name for one in (*SCREENS, *SHOTS)}


def test_each_screen_and_page_has_its_picture_and_none_is_large() -> None:
    sizes = {one.stem: one.stat().st_size for one in PICTURES.iterdir()}
    assert {*sizes} == NAMES
    assert {name: size for name, size in sizes.items() if size > MOST_BYTES} == {}


def test_each_picture_stands_in_a_page(repo_root: Path) -> None:
    pages = [repo_root / "README.md", *(repo_root / "docs").glob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    assert [one.name for one in PICTURES.iterdir() if f"pictures/{one.name}" not in text] == []


def test_the_screens_are_of_commands_that_there_are() -> None:
    assert {one.words[0] for one in SCREENS} <= {*COMMANDS}


def test_a_terminal_shows_what_was_typed_and_what_came() -> None:
    words = ["run", "s3://a/x y/", "s3://b/", "--date-format", "%Y", "--exclude", "<b>" * 30]
    drawn = as_svg(words, "\x1b[1mbold\x1b[0m & <i>plain</i>\r\n")
    picture = ElementTree.fromstring(drawn)  # noqa: S314 - our own
    rows = ["".join(one.itertext()).replace("\xa0", " ") for one in picture.iter(f"{SVG}text")]
    text = "".join(rows)
    assert "$ compactor run 's3://a/x y/' s3://b/ --date-format %Y \\" in text
    assert "--exclude '<b><b>" in text
    assert "bold & <i>plain</i>" in text
    assert "url(http" not in drawn


def test_a_command_in_a_terminal_knows_that_it_is_one() -> None:
    assert run_in_terminal(["--version"]).startswith("compactor ")


def test_a_command_that_fails_gives_no_picture() -> None:
    with pytest.raises(CommandFailed, match=r"history --runs 0: exit code 2: .*1 to 1,000"):
        run_in_terminal(["history", "--runs", "0"])
