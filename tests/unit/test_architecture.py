"""The house rules that no linter knows, and proof that the import rules are in force."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = ("functions", "scripts", "spark", "cdk")
# One subject takes 100 lines or 400; none is cut in two for a number.
# Of one subject: no module is cut in two for a number.
MODULE_LINES = 460
# One entry for each field of a run or of a deployment: a table, in which nobody reads all lines.
TABLES = frozenset({"functions/compactor/settings/fields.py", "cdk/config.py"})

# What DESIGN.md's terminology replaces. Python's own words for byte pieces stay allowed.
FORBIDDEN_NAMES = re.compile(
    r"(^|_)(folders?|garbage|finali[sz]e|merged_(files?|objects?)|temp_files?|process_batch)(_|$)",
    re.IGNORECASE,
)
# Brackets keep these from finding themselves.
MACHINE_PATHS = re.compile(r"/[h]ome/\w+/|/[U]sers/\w+/|/[r]oot/|(?<!\w)/[w]ork/(main|shared)\b")
REGISTRY_HOSTS = re.compile(
    r"pypi[.]org|python[h]osted|registry[.](npmjs|yarnpkg)|repo1?[.]maven|proxy[.]golang"
)
EXCEPTION_FROM_LINT = re.compile(r"#\s*(?:noqa|type:\s*ignore)\b(?P<rest>.*)")
# Codes in brackets or after a colon, then at least two words that say why.
CODES_AND_REASON = re.compile(r"\s*(\[[\w\-, ]+\]|:\s*[A-Z]+\d+(\s*,\s*[A-Z]+\d+)*)\W+\w+\W+\w+")


@cache
def tracked_texts() -> dict[Path, str]:
    """Every text that is or will be committed, by its path relative to the root."""
    texts = {}
    for name in tracked_names():
        path = ROOT / name
        if path.is_file():
            texts[Path(name)] = path.read_bytes().decode("utf-8", "replace")
    assert Path("pyproject.toml") in texts
    return texts


def tracked_names() -> list[str]:
    """What git tracks or would; without git (an unpacked archive), all that is not hidden."""
    git = shutil.which("git")
    if git is not None:
        command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            return [name for name in listed.stdout.split("\0") if name]
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
    return [
        str(path)
        for path in found
        if path.parts[0] == ".ci" or not path.parts[0].startswith(".")
        if "__pycache__" not in path.parts
    ]


def modules(*roots: str) -> Iterator[tuple[Path, str]]:
    for path, text in tracked_texts().items():
        if path.suffix == ".py" and path.parts[0] in roots:
            yield path, text


def defined_names(tree: ast.AST) -> Iterator[str]:
    """Names that a module chooses itself; those it merely uses belong to others."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:120]}"
        for path, text in tracked_texts().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on a copy or on the original; its packages are found below ``root``."""
    run = "import sys; sys.path[:0] = sys.argv.pop(1).split(';'); "
    run += "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [
            sys.executable,
            "-c",
            run,
            ";".join(str(root / name) for name in ("functions", "scripts", "spark", ".")),
            "--no-cache",
            "--no-logo",
        ],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )


def test_imports_point_from_the_edges_to_the_model_and_never_back() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_package_map_in_the_design_is_the_order_of_imports() -> None:
    contracts = tomllib.loads(tracked_texts()[Path("pyproject.toml")])["tool"]["importlinter"]
    edges, core, *_ = (one["layers"] for one in contracts["contracts"] if one["type"] == "layers")
    section = tracked_texts()[Path("DESIGN.md")].partition("## Where things live\n")[2]
    first_columns = re.findall(r"^ {4,}([\w/]+(?:, \w+)*)", section, re.MULTILINE)
    shown = [[one.rpartition("/")[2] for one in column.split(", ")] for column in first_columns]
    assert shown == [re.split(r" [|:] ", layer) for layer in (*edges, *core)]


@pytest.mark.parametrize(
    ("module", "offence"),
    [
        ("functions/compactor/model.py", "import compactor.planning.plan"),
        ("functions/compactor/planning/plan.py", "import compactor.discovery.discover"),
        ("functions/compactor/planning/plan.py", "import boto3"),
        ("functions/compactor_handlers/discover.py", "import boto3"),
        ("functions/compactor/outputs/compact.py", "import compactor.s3"),
        ("functions/compactor/outputs/compact.py", "import pyspark"),
        ("functions/compactor/report/report.py", "import compactor_handlers"),
    ],
)
def test_an_import_against_the_rules_is_refused(module: str, offence: str, tmp_path: Path) -> None:
    for path, text in tracked_texts().items():
        if path.parts[0] in CODE or path.name == "pyproject.toml":
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text, encoding="utf-8")
    with (tmp_path / module).open("a", encoding="utf-8") as offender:
        offender.write(f"\n{offence}\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "BROKEN" in result.stdout


def test_modules_stay_short_enough_to_read_at_one_sitting() -> None:
    too_long = {
        str(path): len(text.splitlines())
        for path, text in modules(*CODE)
        if len(text.splitlines()) > MODULE_LINES and str(path) not in TABLES
    }
    assert too_long == {}


def test_one_word_is_used_for_each_concept() -> None:
    offenders = sorted(
        f"{path}: {name}"
        for path, text in modules(*CODE)
        for name in defined_names(ast.parse(text))
        if FORBIDDEN_NAMES.search(name)
    )
    assert offenders == []


def test_no_text_names_a_path_of_one_machine() -> None:
    assert lines_matching(MACHINE_PATHS) == []


def test_no_text_names_a_package_registry() -> None:
    assert lines_matching(REGISTRY_HOSTS) == []


def test_every_exception_from_lint_gives_its_reason() -> None:
    offenders = [
        f"{path}:{number}: {line.strip()}"
        for path, text in modules(*CODE, "tests")
        if path.name != Path(__file__).name
        for number, line in enumerate(text.splitlines(), start=1)
        if (found := EXCEPTION_FROM_LINT.search(line)) and not CODES_AND_REASON.match(found["rest"])
    ]
    assert offenders == []


@pytest.mark.parametrize(
    ("comment", "reasoned"),
    [
        ("# noqa: S311 - reproducible, not secret", True),
        ("# noqa: S311,S105  # reproducible, not secret", True),
        ("# type: ignore[override]  # moto's base has no types", True),
        ("# noqa: S311", False),
        ("# noqa", False),
        ("# type: ignore[override]", False),
    ],
)
def test_a_reason_is_distinguished_from_a_bare_exception(comment: str, reasoned: bool) -> None:
    found = EXCEPTION_FROM_LINT.search(comment)
    assert found is not None
    assert bool(CODES_AND_REASON.match(found["rest"])) is reasoned


def test_every_requirement_is_pinned_with_hashes() -> None:
    locks = [p for p in tracked_texts() if p.match("requirements*.txt")]
    assert len(locks) >= 3
    for lock in locks:
        entries = re.split(r"\n(?=[a-z])", tracked_texts()[lock])[1:]
        assert entries
        loose = [e.splitlines()[0] for e in entries if "==" not in e or "--hash=sha256:" not in e]
        assert loose == [], lock
