from __future__ import annotations

import ast
import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import botocore
import pytest

from cdk.assets import (
    LAMBDA_EXCLUDES,
    LAMBDA_PACKAGES,
    LAMBDA_REQUIREMENTS,
    MAINTENANCE_PACKAGES,
    ONLY_COMPACTION,
    check_size,
)
from compactor.errors import InvalidInput
from compactor.sizes import MIB
from compactor_bundling import bundles
from compactor_bundling.bundles import (
    LOCK,
    SPARK_PACKAGES,
    SPARK_REQUIREMENTS,
    BundleError,
    Machine,
    build_application,
    build_dependencies,
    build_spark_application,
    compile_modules,
    contents,
    submit_arguments,
    write_zip,
)

MACHINE = Machine("x86_64", "3.11")


def write(directory: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


# Archives.


def test_an_archive_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    texts = {"b/x.py": "1", "a.py": "2", "b/__pycache__/x.cpython-311.pyc": "3"}
    first = write(tmp_path / "first", texts)
    second = write(tmp_path / "second", dict(reversed(texts.items())))
    os.utime(second / "a.py", (10**9, 10**9))
    (second / "a.py").chmod(0o700)
    (second / "b" / "__pycache__" / "y.pyc").write_text("other")
    write_zip(first, tmp_path / "first.zip")
    write_zip(second, tmp_path / "out" / "second.zip")
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "out/second.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "first.zip") as read:
        assert read.namelist() == ["a.py", "b/x.py"]
        modes = {stat.filemode(one.external_attr >> 16) for one in read.infolist()}
    assert modes == {"-rw-r--r--"}


def test_another_content_gives_another_archive(tmp_path: Path) -> None:
    archives = []
    for text in ("1", "2"):
        write_zip(write(tmp_path / "from", {"a.py": text}), tmp_path / "a.zip")
        archives.append((tmp_path / "a.zip").read_bytes())
    assert archives[0] != archives[1]


def test_packages_are_copied_side_by_side_without_what_python_left(tmp_path: Path) -> None:
    one = write(tmp_path / "from" / "one", {"__init__.py": "", "__pycache__/x.pyc": "", "d/e": "e"})
    two = write(tmp_path / "two", {"m.py": ""})
    target = write(tmp_path / "target", {"library/__init__.py": ""})
    build_application([one, two], target)
    copied = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    assert copied == ["library/__init__.py", "one/__init__.py", "one/d/e", "two/m.py"]


def test_the_application_holds_all_packages(tmp_path: Path) -> None:
    build_spark_application(tmp_path)
    names = {path.relative_to(tmp_path).as_posix() for path in contents(tmp_path)}
    assert {
        "compactor/__init__.py",
        "compactor/s3/store.py",
        "compactor_spark/driver.py",
        "compactor_tables/orders.py",
    } <= names
    roots = {"compactor", "compactor_spark", "compactor_tables"}
    assert {name.split("/")[0] for name in names} == roots
    assert not [name for name in names if "handlers" in name]
    assert not [name for name in names if name.endswith(".pyc")]


def test_the_functions_of_maintenance_need_nothing_of_compaction(tmp_path: Path) -> None:
    build_application(MAINTENANCE_PACKAGES, tmp_path, ONLY_COMPACTION)
    modules = [
        str(path.relative_to(tmp_path).with_suffix("")).replace("/", ".")
        for path in contents(tmp_path / "compactor_tables")
        if path.suffix == ".py"
    ]
    script = f"import importlib\nfor name in {modules}: importlib.import_module(name)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(modules) > 40
    assert not (tmp_path / "compactor" / "outputs").exists()


# Libraries.


def imported(directory: Path) -> set[str]:
    """Top-level names that modules of a package import while they run."""
    found = set()
    for path in directory.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names)


def test_all_that_the_job_imports_is_asked_for_and_nothing_more() -> None:
    names = set().union(*map(imported, SPARK_PACKAGES))
    # Of Lambda functions alone, which the archive leaves out.
    names -= {"aws_lambda_powertools"}
    # Stubs for type checkers, and Spark, which is on the cluster. The command line is imported by
    # whoever asks the package for its API, and by `python -m compactor`: no job does.
    names -= {"types_boto3_s3", "pyspark", "py4j"}
    names -= {"compactor", "compactor_cli", "compactor_spark", "compactor_tables"}
    # Of compactor.catalogs alone: outputs are brought into a table behind the job, not by it.
    names -= {"deltalake", "pyiceberg"}
    # botocore, too, takes its authorities where it is installed, and has its own.
    names -= {"certifi"}
    assert {name.replace("_", "-") for name in names} == set(SPARK_REQUIREMENTS)


# What a function imports only with the larger bundle, or never.
_ONLY_SOMEWHERE = {"pyarrow", "pyiceberg", "deltalake"}


def test_functions_bring_what_they_import_and_take_nothing_of_lambdas() -> None:
    packages = {*LAMBDA_PACKAGES, *MAINTENANCE_PACKAGES}
    names = set().union(*map(imported, packages)) - _ONLY_SOMEWHERE
    # Stubs for type checkers; the authorities of botocore, which has its own.
    names -= {"types_boto3_s3", "certifi"}
    names -= {name for name in names if name.startswith("compactor")}
    bundled = {*LAMBDA_REQUIREMENTS}
    assert {name.replace("_", "-") for name in names} <= bundled
    # Lambda's botocore may be any version, and the client leans on the locked one.
    assert "botocore" in bundled
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK.read_text("utf-8"), re.MULTILINE))
    assert pinned["botocore"] == botocore.__version__
    assert "boto3" in LAMBDA_EXCLUDES


@pytest.mark.parametrize(
    ("architecture", "python", "field"),
    [
        ("aarch64", "3.11", "architecture"),
        ("x86_64", "3", "python"),
        ("x86_64", "3.11.7", "python"),
        ("arm64", "3.10", "python"),
    ],
)
def test_a_machine_that_does_not_exist_is_refused(
    architecture: str, python: str, field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        Machine(architecture, python)
    assert caught.value.field == field


def test_a_directory_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, {"precious": "x"})
    with pytest.raises(InvalidInput, match="an empty or new directory"):
        build_dependencies(tmp_path, MACHINE, ["isal"])
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_library_that_the_lock_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="'isl' is not accepted"):
        build_dependencies(tmp_path / "deps", MACHINE, ["isl"])


@pytest.mark.slow
def test_libraries_come_with_what_they_need_and_without_what_is_left_out(
    tmp_path: Path, registry_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in registry_environment.items():
        monkeypatch.setenv(name, value)
    try:
        build_dependencies(
            tmp_path, MACHINE, ["jinja2"], excludes=["markupsafe"], unused=["jinja2/py.typed"]
        )
        build_dependencies(tmp_path / "whole", MACHINE, ["jinja2"])
    except BundleError as error:
        pytest.skip(f"no package index: {error}")
    names = {path.name for path in tmp_path.iterdir()}
    assert "jinja2" in names
    assert not {"markupsafe", "bin", ".lock"} & names
    assert not (tmp_path / "jinja2" / "py.typed").exists()
    assert (tmp_path / "whole" / "markupsafe").is_dir()


def test_a_bundle_that_its_place_does_not_take_is_one_clear_error(tmp_path: Path) -> None:
    write(tmp_path, {"a/b.so": "x" * MIB, "a/__pycache__/b.pyc": "x" * MIB, "c.py": "x"})

    check_size(tmp_path, 2 * MIB + 1)
    with pytest.raises(BundleError, match="3 MiB unpacked; the limit is 2"):
        check_size(tmp_path, 2 * MIB)


def test_libraries_that_cannot_be_had_are_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(BundleError, match=r"for x86_64 and Python 3\.11: .*isal") as caught:
        build_dependencies(tmp_path / "deps", MACHINE, ["isal"])
    assert "\n" not in str(caught.value)


def test_without_uv_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BundleError, match="make set-up"):
        build_dependencies(tmp_path / "deps", MACHINE, ["isal"])


def test_the_command_shows_a_failure_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    assert bundles.main(["--out", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert re.fullmatch(r"bundles: uv could not install .*\n", told.err)
    assert bundles.main(["--python", "2.7"]) == 2
    assert "python: '2.7' is not accepted" in capsys.readouterr().err


# How they go with the job.


def test_the_arguments_lead_to_the_unpacked_libraries(repo_root: Path) -> None:
    emr = submit_arguments("s3://b/deps.zip", "s3://b/app.zip")
    assert emr[:4] == ["--archives", "s3://b/deps.zip#deps", "--py-files", "s3://b/app.zip"]
    serverless = submit_arguments("d.zip", "a.zip", "emr_serverless")
    with pytest.raises(InvalidInput, match="emr or emr_serverless"):
        submit_arguments("d.zip", "a.zip", "none")
    # The workflow passes the same ones.
    workflow = json.dumps(
        json.loads((repo_root / "statemachine" / "compaction.asl.json").read_text())
    )
    for word in (*emr[5::2], *serverless[5::2], "#deps"):
        assert word in workflow


def test_functions_start_from_bytecode_whatever_the_time_of_their_sources(tmp_path: Path) -> None:
    write(tmp_path, {"package/__init__.py": "", "package/module.py": "ANSWER = 42"})
    compile_modules(tmp_path, sys.executable)
    (tmp_path / "package" / "module.py").write_text("ANSWER = 0")
    program = "import package.module; print(package.module.ANSWER)"
    command = [sys.executable, "-c", program]
    environment = {"PYTHONPATH": str(tmp_path)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "42\n"


def test_bytecode_is_the_same_wherever_it_was_built(tmp_path: Path) -> None:
    compiled = []
    for name in ("first", "second"):
        directory = write(tmp_path / name, {"module.py": "def f():\n    return {'a', 'b', 'c'}"})
        compile_modules(directory, sys.executable)
        compiled += [path.read_bytes() for path in directory.rglob("*.pyc")]
    assert len(compiled) == 2
    assert compiled[0] == compiled[1]


def test_a_module_that_cannot_be_compiled_ends_the_build(tmp_path: Path) -> None:
    write(tmp_path, {"module.py": "def"})
    with pytest.raises(BundleError, match="compileall failed"):
        compile_modules(tmp_path, sys.executable)
