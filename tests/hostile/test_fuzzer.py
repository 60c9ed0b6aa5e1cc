"""The fuzzer runs: for a moment here, elsewhere as long as one likes; what fails is shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import fuzz, seeds
from tests.hostile.parsers import PARSERS


def test_a_thousand_inputs_fail_no_parser(repo_root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.fuzz", "0"],
        cwd=repo_root,
        env={"PYTHONPATH": f"{repo_root / 'functions'}:{repo_root}"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    found = re.search(r"^fuzz: (\d+) parsers, ([\d,]+) inputs .*, 0 failures$", done.stdout, re.M)
    assert found is not None
    assert int(found[1]) == len(PARSERS)
    assert int(found[2].replace(",", "")) >= 1_000 * len(PARSERS)


def test_what_fails_a_parser_is_shown_with_its_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(data: bytes) -> None:
        if b"</" not in data:
            raise KeyError("a defect")

    monkeypatch.setitem(PARSERS, "listing", fails)
    (tmp_path / "seed").write_bytes(b"<a></a>")
    with pytest.raises(KeyError, match="a defect"):
        fuzz._change_at_random("listing", 60, tmp_path)
    assert capsys.readouterr().out.startswith("input: b'")


def test_every_parser_has_seeds() -> None:
    assert seeds.SEEDS.keys() == PARSERS.keys()
    assert all(seeds.SEEDS.values())
