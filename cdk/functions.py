"""Lambda functions that share a bundle, each with its own role, memory and log."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration, RemovalPolicy, Size, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk import REPOSITORY
from cdk.assets import LAMBDA_PYTHON, functions_bundle
from cdk.config import Deployment, Vpc
from cdk.grants import allow, own_role
from compactor.settings.encryption import ENCRYPTION_VARIABLE
from compactor_bundling.bundles import Machine

#: The processor of all functions, which costs a fifth less than the other.
ARCHITECTURE = "arm64"
#: The workflow waits 920 seconds, so a retry never starts while an invocation is still running.
TIMEOUT_SECONDS = 900
#: Retention of all logs.
RETENTION = logs.RetentionDays.ONE_MONTH
_INTERFACES = "EC2 names interfaces when Lambda makes them, and describes them without resources."


def own_log(scope: Construct, name: str, group: str, writer: iam.Role | None) -> logs.LogGroup:
    """Return a log group that ends with the stack, which the role may write to."""
    log = logs.LogGroup(
        scope,
        name,
        log_group_name=group,
        retention=RETENTION,
        removal_policy=RemovalPolicy.DESTROY,
    )
    if writer is not None:
        allow(
            writer,
            ["logs:CreateLogStream", "logs:PutLogEvents"],
            [log.log_group_arn],
            wildcard="Streams of its own log group; Lambda names them.",
        )
    return log


class Functions(Construct):
    """The functions of one stack.

    Args:
        scope: the stack.
        deployment: what to deploy.
        encryption: what the functions name in each write, from :mod:`cdk.storage`.
        handlers: the package of their handlers.

    Attributes:
        by_name: handler module (``discover``, …) -> function.
        roles: handler module -> role of its function.
        log_groups: handler module -> log group of its function.
    """

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        encryption: str,
        *,
        handlers: str = "compactor_handlers",
    ) -> None:
        super().__init__(scope, "Functions")
        self._deployment, self._handlers = deployment, handlers
        self._environment = {
            "POWERTOOLS_METRICS_NAMESPACE": deployment.name,
            ENCRYPTION_VARIABLE: encryption,
        }
        self._codes: dict[bool, lambda_.Code] = {}
        self.by_name: dict[str, lambda_.Function] = {}
        self.roles: dict[str, iam.Role] = {}
        self.log_groups: dict[str, logs.LogGroup] = {}

    @property
    def names(self) -> Mapping[str, str]:
        """Handler module -> name of its function."""
        return {name: self._full_name(name) for name in self.by_name}

    def add(
        self,
        name: str,
        memory_mb: int,
        *,
        timeout_seconds: int = TIMEOUT_SECONDS,
        knows_table: bool = False,
        scratch_mb: int | None = None,
    ) -> iam.Role:
        """Add a function, and return its role, which may write its log.

        Args:
            name: name of its handler module.
            memory_mb: memory in MB, as Lambda counts it.
            timeout_seconds: time limit of an invocation.
            knows_table: include the libraries that read and write tables.
            scratch_mb: size of ``/tmp``; None for Lambda's default, 512.
        """
        ident = "".join(word.capitalize() for word in name.split("_"))
        role = own_role(self, f"{ident}Role", "lambda.amazonaws.com")
        log = own_log(self, f"{ident}Log", f"/aws/lambda/{self._full_name(name)}", role)
        self.log_groups[name], self.roles[name] = log, role
        self.by_name[name] = lambda_.Function(
            self,
            ident,
            function_name=self._full_name(name),
            description=f"s3-compactor: {name}",
            runtime=lambda_.Runtime(
                f"python{LAMBDA_PYTHON}", lambda_.RuntimeFamily.PYTHON, supports_inline_code=True
            ),
            architecture=lambda_.Architecture.ARM_64,
            code=self._code(table=knows_table),
            handler=f"{self._handlers}.{name}.handler",
            role=role,
            memory_size=memory_mb,
            timeout=Duration.seconds(timeout_seconds),
            ephemeral_storage_size=Size.mebibytes(scratch_mb) if scratch_mb else None,
            log_group=log,
            environment=self._environment,
        )
        if self._deployment.vpc is not None:
            _join(self.by_name[name], role, self._deployment.vpc)
        return role

    def _full_name(self, name: str) -> str:
        return f"{self._deployment.name}-{name.replace('_', '-')}"

    def _code(self, *, table: bool) -> lambda_.Code:
        """Return the bundle, with or without the table libraries, which are large."""
        if table not in self._codes:
            maintains = self._handlers != "compactor_handlers"
            machine = Machine(ARCHITECTURE, LAMBDA_PYTHON)
            bundle = functions_bundle(machine, table=table, maintenance=maintains)
            self._codes[table] = lambda_.Code.from_asset(
                str(REPOSITORY / "functions"),
                asset_hash=bundle.fingerprint,
                bundling=bundle.options(),
            )
        return self._codes[table]


def _join(function: lambda_.Function, role: iam.Role, vpc: Vpc) -> None:
    """Connect a function to a VPC; Lambda makes its network interfaces by the function's role.

    The actions are those of the managed policy AWSLambdaVPCAccessExecutionRole. Its guide advises
    to keep them from the function's own code, whose requests have ``lambda:SourceFunctionArn``
    (``lambda/latest/dg/configuration-vpc.html``).
    """

    def arn(kind: str, name: str, account: str | None = None) -> str:
        return Stack.of(role).format_arn(
            service="ec2", resource=kind, resource_name=name, account=account
        )

    interfaces, any_account = arn("network-interface", "*"), "*"
    # The owner of a shared subnet is another account.
    subnets = [arn("subnet", one, any_account) for one in vpc.subnet_ids]
    groups = [arn("security-group", one, any_account) for one in vpc.security_group_ids]
    changes = ("DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses")
    own_code = {"Null": {"lambda:SourceFunctionArn": "true"}}
    for actions, resources in (
        (("CreateNetworkInterface",), [interfaces, *subnets, *groups]),
        (changes, [interfaces]),
        (("DescribeNetworkInterfaces", "DescribeSubnets"), ["*"]),
    ):
        names = [f"ec2:{one}" for one in actions]
        allow(role, names, resources, conditions=own_code, wildcard=_INTERFACES)
    resource = function.node.default_child
    assert isinstance(resource, lambda_.CfnFunction)  # noqa: S101 - what an L2 function is
    resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
        subnet_ids=list(vpc.subnet_ids), security_group_ids=list(vpc.security_group_ids)
    )
