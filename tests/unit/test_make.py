"""What ``make`` says while it works."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compactor_dev import REPOSITORY
from tests.support import server_builds

STEP = str(REPOSITORY / "scripts" / "step.sh")
# What tells its own steps, or has nothing to tell.
TELLING = (
    "scripts/bootstrap.sh ",
    "-m tests.support.server_builds",
    "-m tests.support.runner ",
    "touch ",
    "echo ",
    # Other targets of the same Makefile.
    "make --no-print-directory ",
)


def step(*words: str) -> subprocess.CompletedProcess[str]:
    # What make sets for a step of this very run is none of this one's.
    alone = {name: value for name, value in os.environ.items() if name != "BESIDE"}
    return subprocess.run([STEP, *words], env=alone, capture_output=True, text=True, check=False)


def test_a_step_is_one_line_with_what_it_was_and_how_long_it_took() -> None:
    done = step("import rules", sys.executable, "-c", "print('nobody asked')")
    assert done.returncode == 0
    assert (done.stdout, done.stderr) in {(f"import rules ... {n} s\n", "") for n in range(60)}


def test_a_step_that_fails_shows_what_was_said_and_keeps_the_exit_code() -> None:
    program = "import sys; print('said', flush=True); sys.exit('complained')"
    done = step("lint", sys.executable, "-c", program)
    assert done.returncode == 1
    first, *said = done.stdout.splitlines()
    assert first.startswith("lint ... failed after ")
    assert said == ["said", "complained"]


def test_a_step_is_named_before_it_begins(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    named = [STEP, "types", "cat", str(go)]
    alone = {name: value for name, value in os.environ.items() if name != "BESIDE"}
    with subprocess.Popen(named, env=alone, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        # The command waits until somebody writes.
        assert os.read(running.stdout.fileno(), 100) == b"types ... "
        go.write_text("done", encoding="ascii")
        assert running.wait(timeout=60) == 0


def test_steps_side_by_side_end_with_a_line_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESIDE", "1")
    command = [STEP, "types", sys.executable, "-c", "import sys; sys.exit('complained')"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    begin, end, said = done.stdout.splitlines()
    assert begin == "types ... "
    assert end.startswith("types ... failed after ")
    assert said == "complained"


@pytest.mark.parametrize("arguments", ["", "-q -k word"])
def test_nothing_that_make_test_runs_is_silent(arguments: str) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("there is no make here")
    command = [make, "--dry-run", "--always-make", "--no-print-directory", "test"]
    # Also replaces what a make that runs this test was given.
    command.append(f"PYTEST_ARGS={arguments}")
    planned = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    lines = planned.stdout.replace("\\\n", " ").splitlines()
    assert len(lines) > len(TELLING)
    silent = [line for line in lines if not line.startswith("scripts/step.sh ")]
    assert [line for line in silent if not any(known in line for known in TELLING)] == []


def test_a_server_that_is_not_to_be_had_is_reported_with_what_follows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def versitygw() -> Path:
        raise server_builds.Unavailable("no package index")

    def there() -> Path:
        return Path("server")

    def table_jars() -> tuple[Path, ...]:
        return ()

    monkeypatch.delenv("BESIDE", raising=False)
    monkeypatch.setattr(server_builds, "versitygw", versitygw)
    for name in ("helm", "debian_base", "dynamodb_local", "trino"):
        monkeypatch.setattr(server_builds, name, there)
    monkeypatch.setattr(server_builds, "table_jars", table_jars)
    assert server_builds.main([]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("versitygw, a server for the tests (")
    assert first.endswith(" ... not to be had, so its tests are skipped: no package index")
    assert [one.rpartition(" ... ")[2] for one in others] == ["0 s"] * 5
    assert others[3].startswith("table_jars, what Spark needs for tables in the tests (")

    monkeypatch.setenv("BESIDE", "1")
    assert server_builds.main([]) == 0
    begun, ended, *_ = capsys.readouterr().out.splitlines()
    assert ended == f"{begun}not to be had, so its tests are skipped: no package index"


def _maven_that_brings(content: str, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """A repository that answers every coordinate with this."""
    (directory / "locks").mkdir()
    digest = hashlib.sha256(b"right").hexdigest()
    (directory / "locks" / "jars.txt").write_text(f"# said\na.group:name:1.0 {digest}\n")
    program = directory / "mvn"
    program.write_text(
        "#!/bin/sh\nfor option; do case $option in -DoutputDirectory=*) there=${option#*=};;"
        f" esac; done\nprintf {content} > $there/name-1.0.jar\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    monkeypatch.setattr(server_builds, "_LOCKS", directory / "locks")
    monkeypatch.setattr(server_builds, "_BUILT", directory / "built")


def test_jars_are_fetched_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _maven_that_brings("right", monkeypatch, tmp_path)
    (jar,) = server_builds.table_jars()
    assert (jar.name, jar.read_bytes()) == ("name-1.0.jar", b"right")
    (tmp_path / "mvn").unlink()
    assert server_builds.table_jars() == (jar,)


def test_a_jar_that_is_not_the_pinned_one_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _maven_that_brings("wrong", monkeypatch, tmp_path)
    with pytest.raises(server_builds.Unavailable, match=r"a\.group:name:1\.0 with SHA-256"):
        server_builds.table_jars()
    assert not list((tmp_path / "built").glob("*/finished"))
