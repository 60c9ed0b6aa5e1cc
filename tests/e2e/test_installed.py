"""The wheel in fresh environments and an empty directory, as its users have it."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import compactor
from compactor_cli.commands import COMMANDS
from compactor_cli.machine.spark_submit import SparkMissing, find_spark
from compactor_local.embedded import EmbeddedS3, SeedObject
from compactor_local.generate import generate
from tests.support.progress_lines import without_progress
from tests.support.wheel import Installed, build, install

OBJECTS = 40
SOURCE, LAKE = "s3://installed-logs/raw/", "s3://installed-lake/compacted/"
ROWS, TABLE = "s3://installed-logs/rows/", "s3://installed-lake/table/"
BY_SPARK, BY_SPARK_TABLE = "s3://installed-logs/spark/", "s3://installed-lake/spark/"
# What was written just now counts as settled, and its day as closed.
FIELDS = ("--depth", "4", "--settle-seconds", "0")
CSV = ("--formats", '[{"match": "*.csv", "format": "csv", "header": true}]')
MOST_PACKAGES = 25
MOST_BYTES = 100_000_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(wheel, tmp_path_factory.mktemp("base") / "venv")


@dataclass(frozen=True, slots=True)
class Shell:
    """An empty directory, where ``compactor`` is typed."""

    installed: Installed
    s3: EmbeddedS3
    directory: Path

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.installed.compactor(*words, cwd=self.directory, environment=self.s3.environment)

    def fill(self, prefix: str, files: int, kinds: tuple[str, ...]) -> None:
        """Put generated objects below a prefix of the logs."""
        day = datetime.now(UTC).date() - timedelta(days=3)
        generated = generate(files, 20, kinds=kinds, start=day, days=1)
        self.s3.seed(
            "installed-logs",
            [SeedObject(prefix + one.key, one.content, one.last_modified) for one in generated],
        )

    def shown(self, *words: str) -> str:
        """What it prints; it succeeds, and has nothing to complain of."""
        done = self(*words)
        assert (done.returncode, without_progress(done.stderr)) == (0, ""), words
        return done.stdout

    def refused(self, *words: str) -> str:
        """The one line that tells why it fails."""
        done = self(*words)
        assert done.returncode == 1, words
        assert done.stderr.startswith("compactor: ")
        assert done.stderr.count("\n") == 1
        return done.stderr


@pytest.fixture(scope="module")
def shell(base: Installed, s3: EmbeddedS3, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    for bucket in ("installed-logs", "installed-lake"):
        s3.create_bucket(bucket)
    return Shell(base, s3, tmp_path_factory.mktemp("empty"))


def put_a_module_in_the_way(directory: Path) -> None:
    """Python imports what lies in the working directory of ``python -m``, unless it is told."""
    for name in ("random", "scripts"):
        (directory / f"{name}.py").write_text("raise SystemExit('not what was meant')\n")


def test_every_name_that_the_wheel_adds_begins_with_compactor(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {Path(name).parts[0] for name in archive.namelist()}
    records = {name for name in names if name.endswith(".dist-info")}
    packages = {
        "compactor",
        "compactor_cli",
        "compactor_handlers",
        "compactor_local",
        "compactor_spark",
        "compactor_tables",
    }
    assert (names - records, len(records)) == (packages, 1)


def test_the_wheel_says_that_its_packages_are_typed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packages = {Path(name).parts[0] for name in archive.namelist() if name.endswith(".py")}
        typed = {Path(name).parent.name for name in archive.namelist() if "py.typed" in name}
    assert typed == packages


def test_the_base_install_stays_small(base: Installed) -> None:
    files = [
        path
        for distribution in base.distributions
        for file in distribution.files or ()
        if file.suffix != ".pyc" and (path := Path(str(file.locate()))).is_file()
    ]
    files += [path for path in base.site_packages.glob("compactor*/**/*") if path.is_file()]
    sizes = {path: path.stat().st_size for path in files}
    # pip compiles, and what comes of it is as large as the source.
    compiled = sum(size for path, size in sizes.items() if path.suffix == ".py")
    assert len(base.distributions) + 1 <= MOST_PACKAGES
    assert sum(sizes.values()) + compiled < MOST_BYTES


@pytest.mark.parametrize(
    ("program", "words"),
    [("compactor", ()), ("python", ("-m", "compactor")), ("python", ("-m", "compactor_cli"))],
)
def test_the_command_line_is_started_by_its_name_and_by_that_of_its_package(
    base: Installed, tmp_path: Path, program: str, words: tuple[str, ...]
) -> None:
    path = str(base.python.with_name(program))
    done = base.run(path, *words, "--version", cwd=tmp_path, environment={})
    version = f"compactor {compactor.__version__}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, version, "")


@pytest.mark.slow
def test_the_base_install_is_all_that_a_run_and_what_follows_it_need(shell: Shell) -> None:
    shell.fill("raw/", OBJECTS, ("json", "csv"))
    assert json.loads(shell.shown("doctor", LAKE, "--json"))["safe"]
    assert f"{OBJECTS}" in shell.shown("plan", SOURCE, LAKE, *FIELDS, *CSV)

    words = (SOURCE, LAKE, *FIELDS, *CSV, "--workers", "2", "--json")
    ran = json.loads(shell.shown("run", *words))
    assert ran["status"] == "SUCCEEDED"
    assert ran["summary"]["objects_before"] == OBJECTS
    verified = json.loads(shell.shown("verify", SOURCE, LAKE, "--deep", "--json"))
    assert verified["findings"] == []
    listed = json.loads(shell.shown("ls", LAKE, "--json"))
    assert len(listed) == OBJECTS

    shell.shown("restore", LAKE, listed[0]["key"], "-o", "back")
    (restored,) = (path for path in (shell.directory / "back").rglob("*") if path.is_file())
    assert restored.name == Path(listed[0]["key"]).name
    cleaned = shell.shown("clean-up", SOURCE, LAKE, "--delete-after", "0d", "--yes", "--json")
    assert json.loads(cleaned)["done"]["deleted"] == OBJECTS
    # What it was told to write, and nothing else.
    assert [path.name for path in shell.directory.iterdir()] == ["back"]


_EVERY_HELP = """
from compactor_cli.commands import COMMANDS, main
for name in COMMANDS:
    assert main([*name.split(), "--help"]) == 0
"""


def test_every_command_shows_its_options_with_the_base_install(
    base: Installed, tmp_path: Path
) -> None:
    done = base.run(str(base.python), "-c", _EVERY_HELP, cwd=tmp_path, environment={})
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    told = set(re.findall(r"^Usage: compactor ([a-z -]+?) (?:\[|$)", done.stdout, re.MULTILINE))
    assert told == set(COMMANDS)


def test_a_missing_extra_ends_in_one_line_with_the_command_that_installs_it(
    shell: Shell, wheel: Path
) -> None:
    assert shell.refused("demo").endswith(f": pip install '{wheel}[local]'\n")


@pytest.mark.slow
def test_parquet_without_arrow_ends_in_one_line_with_the_command_that_installs_it(
    shell: Shell, wheel: Path
) -> None:
    shell.fill("rows/", 4, ("json",))
    parquet = ("--output-format", "parquet", "--workers", "1", "--json")
    told = shell.refused("run", ROWS, TABLE, *FIELDS, *parquet)
    assert told.endswith(f": pip install '{wheel}[rows]'\n")


@pytest.mark.slow
def test_the_extra_local_has_all_that_the_demo_needs(
    wheel: Path, s3: EmbeddedS3, tmp_path: Path
) -> None:
    put_a_module_in_the_way(tmp_path)
    local = install(wheel, tmp_path / "venv", "local")
    shell = Shell(local, s3, tmp_path)
    demo = json.loads(shell.shown("demo", "--objects", "50", "--workers", "2", "--json"))
    assert demo["verified"]["findings"] == []
    assert demo["verified"]["sources"] == 50


@pytest.mark.slow
def test_the_extra_rows_has_all_that_parquet_needs(
    wheel: Path, shell: Shell, tmp_path: Path
) -> None:
    put_a_module_in_the_way(tmp_path)
    rows = Shell(install(wheel, tmp_path / "venv", "rows"), shell.s3, tmp_path)
    rows.fill("rows/", 4, ("json",))
    parquet = ("--output-format", "parquet", "--workers", "1", "--json")
    assert json.loads(rows.shown("run", ROWS, TABLE, *FIELDS, *parquet))["status"] == "SUCCEEDED"
    verified = json.loads(rows.shown("verify", ROWS, TABLE, "--json"))
    assert verified["findings"] == []
    assert verified["outputs"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_the_extras_rows_and_spark_have_all_that_parquet_by_spark_needs(
    wheel: Path, shell: Shell, tmp_path: Path
) -> None:
    try:
        find_spark()
    except SparkMissing as error:
        pytest.skip(str(error))
    put_a_module_in_the_way(tmp_path)
    spark = Shell(install(wheel, tmp_path / "venv", "rows", "spark"), shell.s3, tmp_path)
    spark.fill("spark/", 4, ("json",))
    parquet = ("--output-format", "parquet", "--engine", "spark", "--json")
    ran = json.loads(spark.shown("run", BY_SPARK, BY_SPARK_TABLE, *FIELDS, *parquet))
    assert (ran["status"], bool(ran["summary"]["spark"])) == ("SUCCEEDED", True)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_the_extra_lake_has_all_that_the_demonstration_of_events_needs(
    wheel: Path, s3: EmbeddedS3, tmp_path: Path
) -> None:
    directory = tmp_path / "empty"
    directory.mkdir()
    lake = Shell(install(wheel, tmp_path / "venv", "lake"), s3, directory)
    shown = json.loads(lake.shown("demo", "--ingest", "--objects", "40", "--json"))
    assert shown["holds"]
    assert (shown["objects"], shown["rows"]) == (40, 800)
    assert list(directory.iterdir()) == []
