"""The services that run the Spark job, and what the workflow may do with each.

The actions that ``.sync`` needs are from the Step Functions manual: CDK adds none of them for a
definition that is loaded from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from aws_cdk import Annotations, Arn, ArnComponents, ArnFormat, Aws, Stack
from aws_cdk import aws_emr as emr
from aws_cdk import aws_emrserverless as emrserverless
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk.checks import acknowledge
from cdk.config import Config
from cdk.grants import Role, allow, own_role
from cdk.readers import DESTINATION, Vpc

_OURS = "s3-compactor"
_NEW_NAMES = "EMR names clusters and steps when it makes them; the tag of the workflow bounds them."
_OUR_JOBS = "EMR Serverless names job runs when they start; the application bounds them."
# In China these services have names that end in .cn, and EMR's own policies match both forms
# ("AmazonEMRServicePolicy_v2" in the AWS managed policy reference).
_EC2_EVERYWHERE, _EMR_EVERYWHERE = "ec2.amazonaws.com*", "elasticmapreduce.amazonaws.com*"
_GB_PER_VCPU = 4
_IDLE_MINUTES = 5
# "Endpoints and quotas for EMR Serverless" in its user guide.
_VCPUS_BY_DEFAULT = 16

MayRun = Callable[[Role], None]
#: The purposes of a job's rights.
RUNS, MERGES, MAINTAINS = "runs", "merges", "maintains"
# For each purpose the managed policy for a running cluster: its id and what it is for.
_POLICIES = {
    RUNS: ("NodesPolicy", "the Spark job"),
    MERGES: ("NodesTablePolicy", "the table of the Spark job"),
    MAINTAINS: ("NodesMaintenancePolicy", "the tables that it maintains"),
}


class Engine(Protocol):
    """A service that runs the job."""

    @property
    def substitutions(self) -> Mapping[str, str]:
        """The values that it substitutes in the workflow's definition."""
        ...

    def allow_workflow(self, policy: iam.Policy) -> None:
        """Add the statements that the state machine needs to use it."""
        ...


class NoEngine:
    """No Spark: oversized partitions are left as they are, and reported."""

    substitutions: Mapping[str, str] = {}

    def allow_workflow(self, policy: iam.Policy) -> None:
        """Add nothing: there is no job to start."""


class Serverless:
    """EMR Serverless, which costs nothing while idle, in the VPC of the functions if any."""

    def __init__(self, scope: Construct, config: Config, rights: Mapping[str, MayRun]) -> None:
        self._role = own_role(
            scope,
            "JobRole",
            "emr-serverless.amazonaws.com",
            of_this_account=True,
        )
        for give in rights.values():
            give(self._role)
        vcpus = config.emr_serverless_max_vcpus
        if vcpus > _VCPUS_BY_DEFAULT:
            Annotations.of(scope).add_info(
                f"EMR Serverless lets an account use {_VCPUS_BY_DEFAULT} vCPUs unless you"
                f" ask for more, and emr_serverless_max_vcpus is {vcpus}: ask for a higher quota"
                ' "Max concurrent vCPUs per account" in Service Quotas. Until then oversized'
                " partitions take longer."
            )
        self._application = emrserverless.CfnApplication(
            scope,
            "Application",
            name=config.name,
            type="Spark",
            release_label=config.emr_release_label,
            architecture=config.architecture.upper(),
            auto_start_configuration=(
                emrserverless.CfnApplication.AutoStartConfigurationProperty(enabled=True)
            ),
            auto_stop_configuration=emrserverless.CfnApplication.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=_IDLE_MINUTES
            ),
            maximum_capacity=(
                emrserverless.CfnApplication.MaximumAllowedResourcesProperty(
                    cpu=f"{vcpus} vCPU", memory=f"{vcpus * _GB_PER_VCPU} GB"
                )
            ),
            network_configuration=_network(config.vpc),
        )

    @property
    def substitutions(self) -> Mapping[str, str]:
        """See the protocol."""
        return {
            "EmrServerlessApplicationId": self._application.attr_application_id,
            "EmrServerlessJobRoleArn": self._role.role_arn,
        }

    def allow_workflow(self, policy: iam.Policy) -> None:
        """See the protocol."""
        arn = self._application.attr_arn
        allow(policy, ["emr-serverless:StartJobRun", "emr-serverless:TagResource"], [arn])
        allow(
            policy,
            [
                "emr-serverless:GetJobRun",
                "emr-serverless:CancelJobRun",
                "emr-serverless:TagResource",
            ],
            [f"{arn}/jobruns/*"],
            wildcard=_OUR_JOBS,
        )
        _may_pass(policy, self._role, "emr-serverless.amazonaws.com")


def _network(vpc: Vpc | None) -> emrserverless.CfnApplication.NetworkConfigurationProperty | None:
    if vpc is None:
        return None
    return emrserverless.CfnApplication.NetworkConfigurationProperty(
        subnet_ids=list(vpc.subnet_ids), security_group_ids=list(vpc.security_group_ids)
    )


class AnyCluster:
    """A running cluster; its owner attaches the policies created here to its nodes' role."""

    substitutions: Mapping[str, str] = {}

    def __init__(self, scope: Construct, config: Config, rights: Mapping[str, MayRun]) -> None:
        self._cluster_id = config.emr_cluster_id or ""
        # One policy per purpose, because a managed policy is limited to 6,144 characters.
        for what, give in rights.items():
            name, about = _POLICIES[what]
            give(
                iam.ManagedPolicy(
                    scope,
                    name,
                    description=f"{config.name}: what nodes of the EMR cluster need for {about}",
                )
            )

    def allow_workflow(self, policy: iam.Policy) -> None:
        """See the protocol."""
        cluster = _clusters(policy, self._cluster_id)
        _may_add_steps(policy, cluster, None, None)


class MadeClusters:
    """A cluster for each run that needs one, terminated after it."""

    def __init__(self, scope: Construct, config: Config, rights: Mapping[str, MayRun]) -> None:
        self._nodes = own_role(scope, "NodesRole", f"ec2.{Aws.URL_SUFFIX}")
        for give in rights.values():
            give(self._nodes)
        # EMR refuses a profile that is not called after its role ("invalid instance profile":
        # "Customize IAM roles with Amazon EMR" in its management guide, emr-iam-roles-custom.html).
        self._profile = iam.InstanceProfile(
            scope,
            "NodesProfile",
            role=self._nodes,
            instance_profile_name=self._nodes.role_name,
        )
        self._service = own_role(
            scope,
            "ServiceRole",
            f"elasticmapreduce.{Aws.URL_SUFFIX}",
            of_this_account=True,
        )
        managed = "service-role/AmazonEMRServicePolicy_v2"
        self._service.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(managed))
        acknowledge(
            self._service,
            f"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{managed}]",
            "What EMR does with EC2 changes with its releases; this policy touches only what has"
            " the tag for-use-with-amazon-emr-managed-policies.",
        )
        _may_pass(self._service, self._nodes, _EC2_EVERYWHERE)
        key_arn = config.kms_keys.get(DESTINATION)
        if key_arn is not None:
            for role in (self._service, self._nodes):
                _may_encrypt_disks(role, key_arn)
        self._security = emr.CfnSecurityConfiguration(
            scope,
            "SecurityConfiguration",
            # It is left unnamed: changes replace it, and old and new cannot share a name.
            security_configuration=_security(key_arn),
        )

    @property
    def substitutions(self) -> Mapping[str, str]:
        """See the protocol."""
        return {
            "EmrServiceRole": self._service.role_name,
            "EmrInstanceProfile": self._profile.instance_profile_name,
            "EmrSecurityConfiguration": self._security.ref,
        }

    def allow_workflow(self, policy: iam.Policy) -> None:
        """See the protocol."""
        clusters = _clusters(policy, "*")
        new = {"StringEquals": {"aws:RequestTag/application": _OURS}}
        ours = {"StringEquals": {"aws:ResourceTag/application": _OURS}}
        allow(
            policy,
            ["elasticmapreduce:RunJobFlow"],
            ["*"],
            conditions=new,
            wildcard="RunJobFlow knows no resources; the tag it must give bounds it.",
        )
        allow(policy, ["elasticmapreduce:AddTags"], [clusters], conditions=new, wildcard=_NEW_NAMES)
        # Checked while the cluster is created, before it has its tags.
        allow(
            policy,
            ["elasticmapreduce:PutAutoTerminationPolicy"],
            [clusters],
            wildcard="EMR names clusters when it makes them; this ends idle ones, nothing else.",
        )
        _may_add_steps(policy, clusters, ours, _NEW_NAMES)
        allow(
            policy,
            ["elasticmapreduce:DescribeCluster", "elasticmapreduce:TerminateJobFlows"],
            [clusters],
            conditions=ours,
            wildcard=_NEW_NAMES,
        )
        _may_link_clean_up(policy)
        _may_pass(policy, self._service, _EMR_EVERYWHERE)
        _may_pass(policy, self._nodes, _EC2_EVERYWHERE)


def _may_encrypt_disks(role: Role, key_arn: str) -> None:
    actions = ("Encrypt", "Decrypt", "ReEncryptFrom", "ReEncryptTo", "GenerateDataKey")
    more = ("GenerateDataKeyWithoutPlaintext", "DescribeKey")
    allow(role, [f"kms:{action}" for action in (*actions, *more)], [key_arn])
    grants = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    allow(role, ["kms:CreateGrant"], [key_arn], conditions=grants)


def _security(key_arn: str | None) -> dict[str, object]:
    at_rest: dict[str, object] = {"S3EncryptionConfiguration": {"EncryptionMode": "SSE-S3"}}
    if key_arn is not None:
        at_rest = {
            "S3EncryptionConfiguration": {
                "EncryptionMode": "SSE-KMS",
                "AwsKmsKey": key_arn,
            },
            "LocalDiskEncryptionConfiguration": {
                "EncryptionKeyProviderType": "AwsKms",
                "AwsKmsKey": key_arn,
                "EnableEbsEncryption": True,
            },
        }
    return {
        "EncryptionConfiguration": {
            # This would need certificates of your own. Sources and outputs always travel by TLS;
            # between nodes there are plans, manifests and, for upserts, shuffled rows.
            "EnableInTransitEncryption": False,
            "EnableAtRestEncryption": True,
            "AtRestEncryptionConfiguration": at_rest,
        },
        "InstanceMetadataServiceConfiguration": {
            "MinimumInstanceMetadataServiceVersion": 2,
            "HttpPutResponseHopLimit": 1,
        },
    }


def _clusters(scope: Construct, name: str) -> str:
    return Arn.format(
        ArnComponents(
            service="elasticmapreduce",
            resource="cluster",
            resource_name=name,
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        ),
        Stack.of(scope),
    )


def _may_add_steps(
    policy: iam.Policy,
    clusters: str,
    conditions: Mapping[str, object] | None,
    wildcard: str | None,
) -> None:
    actions = ["AddJobFlowSteps", "DescribeStep", "CancelSteps"]
    allow(
        policy,
        [f"elasticmapreduce:{action}" for action in actions],
        [clusters],
        conditions=conditions,
        wildcard=wildcard,
    )


def _may_link_clean_up(policy: iam.Policy) -> None:
    # EMR creates this role with the first cluster of an account, using the rights of the caller
    # ("Using service-linked roles for cleanup" in its management guide). In China the service's
    # name ends in .cn, as URLs do.
    service = f"elasticmapreduce.{Aws.URL_SUFFIX}"
    role = Arn.format(
        ArnComponents(
            service="iam",
            region="",
            resource="role",
            resource_name=f"aws-service-role/{service}/AWSServiceRoleForEMRCleanup",
        ),
        Stack.of(policy),
    )
    conditions = {"StringEquals": {"iam:AWSServiceName": service}}
    allow(policy, ["iam:CreateServiceLinkedRole"], [role], conditions=conditions)


def _may_pass(role: Role, passed: iam.Role, service: str) -> None:
    conditions = {"StringLike": {"iam:PassedToService": service}}
    allow(role, ["iam:PassRole"], [passed.role_arn], conditions=conditions)
