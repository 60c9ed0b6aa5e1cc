"""Completions, as the shells give them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from compactor_cli.commands import COMMANDS, main

FISH = shutil.which("fish")
CASES = [
    (["compactor", "cle"], ["clean-up"]),
    (["compactor", "run", "--settle"], ["--settle-seconds"]),
    (["compactor", "-q", "tables", "sc"], ["scan"]),
    (["compactor", "tables", "scan", "--glue-t"], ["--glue-tables"]),
    (["compactor", "run", "s3://a/b/"], []),
]


def printed(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("words", "found"), CASES, ids=" ".join)
def test_bash_completes_commands_actions_and_options(capsys, words, found):
    script = printed(capsys, "bash")
    quoted = " ".join(f"'{word}'" for word in words)
    script += f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _compactor\n"
    script += 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == found
    assert done.stderr == ""


@pytest.mark.skipif(FISH is None, reason="fish is not installed")
@pytest.mark.parametrize(("words", "found"), CASES[:2], ids=" ".join)
def test_fish_completes_commands_and_options(capsys, words, found):
    script = printed(capsys, "fish") + f"complete -C '{' '.join(words)}'\n"
    assert FISH is not None
    done = subprocess.run([FISH, "-N", "-c", script], capture_output=True, text=True, check=True)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_the_completions_of_every_shell(capsys, shell):
    script = printed(capsys, shell)
    assert all(name in script for name in COMMANDS)


def test_another_shell_is_refused_with_those_that_are_known(capsys):
    assert main(["completion", "tcsh"]) == 2
    assert "bash or zsh or fish" in capsys.readouterr().err
