"""Assemblies and deployments of the configurations, each made once."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.infrastructure.cloud.assembly import Assembly
from tests.infrastructure.cloud.deployment import Deployment, deploy
from tests.infrastructure.cloud.running import Cloud, cloud
from tests.infrastructure.configurations import CONFIGURATIONS, expected_buckets

# The CDK's programs are Node's; the one of the lock lies beside Python.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

Synthesized = Callable[[str], Assembly]
Deployed = Callable[[str], Deployment]


@pytest.fixture(scope="session")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """``synthesized(name)``: the assembly of a configuration; every check at synth passed."""
    from cdk.app import build
    from cdk.config import read

    @cache
    def synthesize(name: str) -> Assembly:
        outdir = tmp_path_factory.mktemp("assembly")
        build(read(CONFIGURATIONS[name]), outdir).synth()
        return Assembly(outdir)

    return synthesize


@pytest.fixture(scope="session")
def _empty_cloud() -> Iterator[Cloud]:
    with cloud() as running:
        yield running


@pytest.fixture(scope="session")
def deployed(synthesized: Synthesized, _empty_cloud: Cloud) -> Deployed:
    """``deployed(name)``: what is known of a configuration's stack on moto; itself it is gone."""

    @cache
    def put_up(name: str) -> Deployment:
        _empty_cloud.forget()
        buckets = expected_buckets(CONFIGURATIONS[name])
        return deploy(_empty_cloud, synthesized(name), buckets, with_code=False).read()

    return put_up


@pytest.fixture(scope="session")
def bundled(
    tmp_path_factory: pytest.TempPathFactory, registry_environment: dict[str, str]
) -> Synthesized:
    """``bundled(name)``: the assembly with the functions' code, for this machine and its Python.

    Lambda's own Python and processor are others, so cdk-nag, which asks for the newest runtime,
    is left out here; nothing else differs from what is deployed.
    """
    from cdk import app, functions
    from cdk.config import read

    machine = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())

    @cache
    def synthesize(name: str) -> Assembly:
        outdir = tmp_path_factory.mktemp("bundled")
        for made in outdir.parent.glob("bundled*/asset.*"):
            # The CDK takes an asset that is there already; its name is a hash of what it is of.
            if not (outdir / made.name).exists():
                (outdir / made.name).symlink_to(made)
        document = CONFIGURATIONS[name]
        spark = {"architecture": machine, **document.get("spark", {})}
        with pytest.MonkeyPatch.context() as patch:
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            patch.setattr(functions, "LAMBDA_PYTHON", version)
            patch.setattr(functions, "ARCHITECTURE", machine)
            patch.setattr(app, "check", lambda _: None)
            for variable, value in registry_environment.items():
                patch.setenv(variable, value)
            app.build(read({**document, "spark": spark}), outdir, {}).synth()
        return Assembly(outdir)

    return synthesize


@pytest.fixture(params=sorted(CONFIGURATIONS))
def configuration(request: pytest.FixtureRequest) -> str:
    """The name of each configuration."""
    name: str = request.param
    return name
