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
from cdk.bundles import Machine
from cdk.checks import acknowledge_wildcard
from cdk.config import Config
from cdk.grants import allow, own_role
from cdk.readers import Vpc
from compactor.settings.encryption import ENCRYPTION_VARIABLE

# The workflow waits 920 seconds, so a retry never starts while an invocation is still running.
_TIMEOUT_SECONDS = 900
# Package of the handlers, by whether a function belongs to maintenance.
_HANDLERS = {False: "compactor_handlers", True: "compactor_tables.handlers"}
_INTERFACES = "EC2 names interfaces when Lambda makes them, and describes them without resources."
_ARCHITECTURES = {"arm64": lambda_.Architecture.ARM_64, "x86_64": lambda_.Architecture.X86_64}

_RETENTION = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    5: logs.RetentionDays.FIVE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    120: logs.RetentionDays.FOUR_MONTHS,
    150: logs.RetentionDays.FIVE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
    400: logs.RetentionDays.THIRTEEN_MONTHS,
    545: logs.RetentionDays.EIGHTEEN_MONTHS,
    731: logs.RetentionDays.TWO_YEARS,
    1827: logs.RetentionDays.FIVE_YEARS,
    2192: logs.RetentionDays.SIX_YEARS,
    2557: logs.RetentionDays.SEVEN_YEARS,
}


def log_days(days: int) -> logs.RetentionDays:
    """Return the CDK's constant for a retention in days."""
    return _RETENTION[days]


class FunctionSet(Construct):
    """The functions of compaction, or those of maintenance, which share their packages.

    Args:
        scope: the construct that it belongs to.
        config: what to deploy.
        encryption: what the functions name in each write, from :mod:`cdk.encryption`.
        maintenance: these are the functions of maintenance.

    Attributes:
        by_name: handler module (``discover``, …) -> function.
        roles: handler module -> role of its function.
        log_groups: handler module -> log group of its function.
    """

    def __init__(
        self, scope: Construct, config: Config, encryption: str, *, maintenance: bool = False
    ) -> None:
        super().__init__(scope, "Functions")
        self._config, self._maintenance = config, maintenance
        self._environment = {
            "POWERTOOLS_METRICS_NAMESPACE": config.name,
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

    def _full_name(self, name: str) -> str:
        return f"{self._config.name}-{name.replace('_', '-')}"

    def _code_of(self, *, table: bool) -> lambda_.Code:
        """Return the bundle, with or without the table libraries, which are large."""
        if table not in self._codes:
            machine = Machine(self._config.architecture, LAMBDA_PYTHON)
            bundle = functions_bundle(machine, table=table, maintenance=self._maintenance)
            self._codes[table] = lambda_.Code.from_asset(
                str(REPOSITORY / "functions"),
                asset_hash=bundle.fingerprint,
                bundling=bundle.options(),
            )
        return self._codes[table]

    def add(
        self,
        name: str,
        memory_mb: int,
        *,
        reserved: int | None = None,
        timeout_seconds: int = _TIMEOUT_SECONDS,
        knows_table: bool = False,
        scratch_mb: int | None = None,
    ) -> iam.Role:
        """Add a function.

        Args:
            name: name of its handler module.
            memory_mb: memory in MB, as Lambda counts it.
            reserved: concurrent executions reserved for it; None shares the account's.
            timeout_seconds: time limit of an invocation.
            knows_table: include the libraries that read and write tables.
            scratch_mb: size of ``/tmp``; None for Lambda's default, 512.

        Returns:
            The function's role.
        """
        ident = "".join(word.capitalize() for word in name.split("_"))
        full_name = self._full_name(name)
        log = logs.LogGroup(
            self,
            f"{ident}Log",
            log_group_name=f"/aws/lambda/{full_name}",
            retention=log_days(self._config.log_retention_days),
            removal_policy=RemovalPolicy.DESTROY,
        )
        role = own_role(self, f"{ident}Role", "lambda.amazonaws.com")
        allow(
            role,
            ["logs:CreateLogStream", "logs:PutLogEvents"],
            [log.log_group_arn],
            wildcard="Streams of its own log group; Lambda names them.",
        )
        acknowledge_wildcard(role, "*", "X-Ray knows no resources.")
        self.log_groups[name], self.roles[name] = log, role
        self.by_name[name] = lambda_.Function(
            self,
            ident,
            function_name=full_name,
            description=f"s3-compactor: {name}",
            runtime=lambda_.Runtime(
                f"python{LAMBDA_PYTHON}", lambda_.RuntimeFamily.PYTHON, supports_inline_code=True
            ),
            architecture=_ARCHITECTURES[self._config.architecture],
            code=self._code_of(table=knows_table),
            handler=f"{_HANDLERS[self._maintenance]}.{name}.handler",
            role=role,
            memory_size=memory_mb,
            timeout=Duration.seconds(timeout_seconds),
            ephemeral_storage_size=Size.mebibytes(scratch_mb) if scratch_mb else None,
            reserved_concurrent_executions=reserved,
            tracing=lambda_.Tracing.ACTIVE,
            log_group=log,
            environment=self._environment,
        )
        if self._config.vpc is not None:
            _join(self.by_name[name], role, self._config.vpc)
        return role


def _join(function: lambda_.Function, role: iam.Role, vpc: Vpc) -> None:
    """Connect a function to a VPC; Lambda makes its network interfaces by the function's role.

    The actions are those of the managed policy AWSLambdaVPCAccessExecutionRole. Its guide advises
    to keep them from the function's own code, whose requests have ``lambda:SourceFunctionArn``
    (``lambda/latest/dg/configuration-vpc.html``).
    """
    stack, any_account = Stack.of(role), "*"
    interfaces = stack.format_arn(service="ec2", resource="network-interface", resource_name="*")
    # The owner of a shared subnet is another account.
    places = [("subnet", one) for one in vpc.subnet_ids]
    places += [("security-group", one) for one in vpc.security_group_ids]
    arns = [
        stack.format_arn(service="ec2", account=any_account, resource=kind, resource_name=name)
        for kind, name in places
    ]
    changes = ("DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses")
    looks = ("DescribeNetworkInterfaces", "DescribeSubnets")
    for actions, resources in (
        (("CreateNetworkInterface",), [interfaces, *arns]),
        (changes, [interfaces]),
        (looks, ["*"]),
    ):
        names = [f"ec2:{one}" for one in actions]
        own_code = {"Null": {"lambda:SourceFunctionArn": "true"}}
        allow(role, names, resources, conditions=own_code, wildcard=_INTERFACES)
    resource = function.node.default_child
    assert isinstance(resource, lambda_.CfnFunction)  # noqa: S101 - what an L2 function is
    resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
        subnet_ids=list(vpc.subnet_ids), security_group_ids=list(vpc.security_group_ids)
    )
