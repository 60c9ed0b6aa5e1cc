"""The tree of another commit of this repository, for as long as something is done with it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compactor.errors import InvalidInput
from compactor_dev.benchmark.either import HANDLERS

OPTION = "--against"
# What benchmark/either.py calls, in any version that has it; the second is its name until 0.1.
WORKERS = tuple(f"functions/{name.replace('.', '/')}.py" for name in HANDLERS)


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit in a directory of its own.

    Attributes:
        commit: its short name.
        subject: the first line of its message.
        tree: where it is checked out.
    """

    commit: str
    subject: str
    tree: Path


def resolve(repository: Path, commit: str) -> str:
    """The whole name of a commit whose worker can be started.

    Raises:
        InvalidInput: there is no such commit, or it has no worker yet.
    """
    # Lest a name that begins with a dash be taken for an option.
    wanted = ["--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"]
    found = _git(repository, "rev-parse", *wanted)
    name = found.stdout.strip()
    if found.returncode or not name:
        raise InvalidInput(OPTION, commit, "a commit of this repository, as git names it: HEAD~3")
    if all(_git(repository, "cat-file", "-e", f"{name}:{one}").returncode for one in WORKERS):
        raise InvalidInput(OPTION, commit, f"a commit with the worker, {' or '.join(WORKERS)}")
    return name


@contextlib.contextmanager
def checked_out(repository: Path, commit: str) -> Iterator[Checkout]:
    """A worktree in a temporary directory for the length of the block, however that ends.

    Raises:
        InvalidInput: as :func:`resolve`; or git could not check it out.
    """
    name = resolve(repository, commit)
    told = _git(repository, "log", "-1", "--format=%h %s", name).stdout.strip()
    short, _, subject = told.partition(" ")
    with tempfile.TemporaryDirectory(prefix="s3-compactor-bench-") as directory:
        tree = Path(directory) / short
        try:
            made = _git(repository, "worktree", "add", "--detach", "--force", str(tree), name)
            if made.returncode:
                said = " ".join(made.stderr.split())[-200:]
                raise InvalidInput(OPTION, commit, f"a commit that git can check out ({said})")
            yield Checkout(short, subject, tree)
        finally:
            _git(repository, "worktree", "remove", "--force", str(tree))


def _git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    git = shutil.which("git")
    if git is None:
        raise InvalidInput(OPTION, "no git", "git on the PATH")
    # No hooks: a benchmark runs nothing but workers.
    return subprocess.run(
        [git, "-c", "core.hooksPath=/dev/null", *arguments],
        cwd=repository,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        # A terminal's interrupt ends the benchmark, which then lets git clean up.
        start_new_session=True,
    )
