"""The recipe of README.md, typed as it stands: generated logs, plan, run, verify, ls, restore."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compactor_cli.machine.installed import import_roots
from compactor_local.embedded import EmbeddedS3

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SERVER = "http://127.0.0.1:9000"
_LIMIT_SECONDS = 600


@pytest.fixture
def recipe(repo_root: Path) -> str:
    """The block for the second terminal."""
    text = (repo_root / "README.md").read_text(encoding="utf-8")
    found = [block for block in _BLOCK.findall(text) if "AWS_ENDPOINT_URL_S3" in block]
    assert len(found) == 1
    assert found[0].count(_SERVER) == 1
    assert f"--port {_SERVER.rpartition(':')[2]}" in text
    return str(found[0])


@pytest.fixture
def directory(tmp_path: Path, repo_root: Path) -> Path:
    """Where it is typed: a checkout with an environment to activate."""
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    for name, words in (("compactor", "-m compactor_cli"), ("python", "")):
        command = binaries / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        command.chmod(0o755)
    (binaries / "activate").write_text(f'PATH="{binaries}:$PATH"\n')
    (tmp_path / "scripts").symlink_to(repo_root / "scripts")
    return tmp_path


def test_what_the_readme_says_works_when_it_is_typed(
    recipe: str, directory: Path, s3: EmbeddedS3
) -> None:
    s3.create_bucket("demo")
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", recipe.replace(_SERVER, s3.endpoint_url)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, import_roots()))},
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert _number(r"([\d,]+) objects, ", done.stdout) == 500
    assert re.search(r"(?m)^14 partitions .* 500 ", done.stdout)
    taken = _number(r"(?m)^Objects +([\d,]+) ", done.stdout)
    # Single CSV objects whose header nothing confirms may be left alone.
    assert 500 >= taken > 450
    assert _number(r"sound: .* ([\d,]+) sources", done.stdout) == taken
    listed = set(re.findall(r"(raw/csv/\S+\.csv)  s3://", done.stdout))
    restored = (directory / "restored").rglob("*.csv")
    assert {one.relative_to(directory / "restored").as_posix() for one in restored} == listed
    assert len(listed) > 200


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found is not None, text
    return int(found[1].replace(",", ""))
