"""The container image: built by buildah without a daemon, and started against the embedded S3."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from compactor_bundling.bundles import BundleError, Machine
from compactor_cli.commands import main
from compactor_dev.image import CONTAINERFILE, prepare
from tests.e2e.test_cli_commands import EACH, PARTITIONS, Lake
from tests.support.server_builds import Unavailable, debian_base

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]
MOST_BYTES = 200_000_000
METRICS = "/tmp/metrics/compactor.prom"  # noqa: S108 - in the image
_NAME = "localhost/s3-compactor"
_BASE = "FROM scratch\nADD base.tar /\n"


@dataclass(frozen=True, slots=True)
class Buildah:
    """buildah with a storage of its own; works without a daemon and within containers."""

    directory: Path

    def __call__(self, command: str, *words: str) -> str:
        storage = ["--storage-driver", "vfs", "--root", str(self.directory / "storage")]
        isolated = ["--isolation", "chroot"] if command in ("build", "run") else []
        program = shutil.which("buildah") or "buildah"
        done = subprocess.run(
            [program, *storage, "--runroot", str(self.directory), command, *isolated, *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, container: str, *words: str) -> str:
        """What a program of the image prints, started as the image's user."""
        return self("run", container, "--", *words)


@dataclass(frozen=True, slots=True)
class Image:
    """The image, with a container to start programs in."""

    buildah: Buildah
    container: str

    @property
    def config(self) -> dict[str, object]:
        """Its configuration as OCI has it."""
        inspected = json.loads(self.buildah("inspect", "--type", "image", _NAME))
        config: dict[str, object] = inspected["OCIv1"]["config"]
        return config

    def compactor(self, *words: str) -> str:
        """Start its entry point."""
        entry = self.config["Entrypoint"]
        assert isinstance(entry, list)
        return self.buildah.start(self.container, *entry, *words)


@pytest.fixture(scope="module")
def image(
    tmp_path_factory: pytest.TempPathFactory, registry_environment: dict[str, str]
) -> Iterator[Image]:
    if not shutil.which("buildah"):
        pytest.skip("buildah is not installed (apt-get install buildah)")
    directory = tmp_path_factory.mktemp("image")
    buildah = Buildah(directory)
    try:
        os.link(debian_base(), directory / "base.tar")
        (directory / "Containerfile").write_text(_BASE)
        buildah("build", "--quiet", "--tag", "localhost/base", str(directory))
        base = buildah("from", "localhost/base").strip()
        version = "import sys; print(*sys.version_info[:2], sep='.')"
        python = buildah.start(base, "python3", "-c", version).strip()
        machine = os.uname().machine.replace("aarch64", "arm64")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in registry_environment.items():
                patch.setenv(name, value)
            prepare(directory / "context", Machine(machine, python))
    except (Unavailable, BundleError) as reason:
        pytest.skip(str(reason))
    words = ("--build-arg", "BASE=localhost/base", "--file", str(CONTAINERFILE), "--tag", _NAME)
    buildah("build", "--quiet", *words, str(directory / "context"))
    yield Image(buildah, buildah("from", _NAME).strip())
    shutil.rmtree(directory / "storage", ignore_errors=True)


def test_the_image_is_small_and_starts_as_no_root(image: Image) -> None:
    root = Path(image.buildah("mount", image.container).strip())
    files = [path.lstat() for path in root.rglob("*") if path.is_symlink() or path.is_file()]
    assert 100_000_000 < sum(one.st_size for one in files) <= MOST_BYTES
    shown = image.buildah.start(image.container, "python3", "-c", "import os; print(os.getuid())")
    assert (shown, image.config["User"]) == ("65532\n", "65532:65532")


def test_nothing_is_compiled_at_a_start(image: Image) -> None:
    root = Path(image.buildah("mount", image.container).strip())
    packages = root / "opt" / "compactor"
    sources = {path.stem for path in packages.glob("compactor*/**/*.py")}
    compiled = {path.name.partition(".")[0] for path in packages.glob("compactor*/**/*.pyc")}
    assert sources == compiled


def test_the_image_runs_against_an_s3(image: Image, s3, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(s3)
    words = ("--depth", "1", "--workers", "2", "--metrics-file", METRICS)
    credentials = [f"{name}={value}" for name, value in s3.environment.items() if value]
    entry = image.config["Entrypoint"]
    assert isinstance(entry, list)
    ran = image.buildah.start(
        image.container, "env", *credentials, *entry, "run", *lake.uris, *words, "--json"
    )
    ended = json.loads(ran)
    assert ended["status"] == "SUCCEEDED"
    assert ended["summary"]["objects_before"] == PARTITIONS * EACH
    metrics = image.buildah.start(image.container, "cat", METRICS)
    assert "compactor_run_failed{" in metrics
    # The checkout's own reader, on this machine, finds what the image wrote.
    assert main(["verify", *lake.uris, *lake.endpoint, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []
    assert lake.prove().holds


def test_success_and_failure_are_exit_codes(image: Image) -> None:
    assert image.compactor("--version").startswith("compactor ")
    with pytest.raises(AssertionError, match="exited with status 2"):
        image.compactor("run", "s3://logs/raw/")
