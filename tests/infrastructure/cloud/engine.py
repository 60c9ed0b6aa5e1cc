"""The workflow of a deployed stack, run by the local engine with the deployed code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from compactor_local.definition import REGION
from compactor_local.engine import BRIDGES, EngineOptions, WorkflowResult, run_workflow
from tests.infrastructure.cloud import adapter
from tests.infrastructure.cloud.deployment import Deployment, account_arn

STATE_MACHINE = "state-machine"
"""The access key of what the state machine itself sends."""

# What Lambda's own runtime has for functions that do not bring it.
_IN_THE_RUNTIME = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3")


def run(
    deployment: Deployment,
    execution_input: Mapping[str, Any],
    scratch: Path,
    *,
    run_name: str,
    timeout_seconds: float = 120.0,
    bridges: Mapping[str, str] = BRIDGES,
) -> WorkflowResult:
    """Run one execution of a deployed state machine.

    Args:
        deployment: the stack; its functions run from the code that was bundled for them.
        execution_input: the execution's input.
        scratch: a directory for what the processes need.
        run_name: the execution's name.
        timeout_seconds: for each invocation.
        bridges: what stands in for services.
    """
    definition = deployment.machine["definition"]
    (scratch / "definition.json").write_text(definition, encoding="utf-8")
    functions = {name: described(deployment, name, scratch) for name in deployment.functions}
    (scratch / "functions.json").write_text(json.dumps(functions), encoding="utf-8")
    environment = {
        **deployment.cloud.environment,
        "AWS_ACCESS_KEY_ID": STATE_MACHINE,
        adapter.FUNCTIONS: str(scratch / "functions.json"),
    }
    return run_workflow(
        execution_input,
        run_name=run_name,
        workers=2,
        endpoint_url=deployment.cloud.endpoint_url,
        handler_modules=dict.fromkeys(functions, adapter.__name__),
        options=EngineOptions(
            definition=scratch / "definition.json",
            environment=environment,
            handler_timeout_seconds=timeout_seconds,
            log=scratch / "engine.log",
            wait_scale=0,
            bridges=bridges,
        ),
    )


class Context:
    """What the adapter asks of a context, for a function that no state machine starts."""

    memory_limit_in_mb = 1_769

    def __init__(self, function_name: str, request_id: str = "run-1") -> None:
        self.function_name, self.aws_request_id = function_name, request_id
        self.invoked_function_arn = account_arn("lambda", f"function:{function_name}")

    def get_remaining_time_in_millis(self) -> int:
        """As the deployed function has."""
        return 900_000


def described(deployment: Deployment, name: str, scratch: Path) -> dict[str, Any]:
    """A function as :mod:`tests.infrastructure.cloud.adapter` runs it.

    Its access key is its name, so that what it sends is known to be its own.
    """
    configuration = deployment.functions[name]
    code = deployment.code(name)
    return {
        "handler": configuration["Handler"],
        "path": [str(code), str(_runtime(scratch))],
        "environment": {
            **configuration.get("Environment", {}).get("Variables", {}),
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(configuration["MemorySize"]),
            "LAMBDA_TASK_ROOT": str(code),
            # The trace was not chosen to be kept, so nothing is sent to a daemon.
            "_X_AMZN_TRACE_ID": "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0",
            "AWS_ACCESS_KEY_ID": name,
            "AWS_SECRET_ACCESS_KEY": name,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": deployment.cloud.endpoint_url,
            "AWS_ENDPOINT_URL_S3": deployment.cloud.endpoint_url,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "PATH": os.environ["PATH"],
        },
    }


def _runtime(scratch: Path) -> Path:
    """A directory with the libraries of Lambda's runtime and no others."""
    directory = scratch / "runtime"
    if directory.exists():
        return directory
    directory.mkdir()
    for name in _IN_THE_RUNTIME:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        found = origin.parent if origin.name == "__init__.py" else origin
        (directory / found.name).symlink_to(found)
    return directory
