"""Spark: an application on EMR Serverless, steps on a running cluster, or nothing.

In every case all substitutions of a workflow's definition get a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from aws_cdk import Annotations, Aws, Stack
from aws_cdk import aws_emrserverless as emrserverless
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from cdk import REPOSITORY
from cdk.assets import asset, spark_application, spark_jar, spark_libraries
from cdk.config import Deployment
from cdk.grants import IN_THIS_ACCOUNT, Role, allow, may_pass, own_role
from cdk.machines import arn_of
from cdk.storage import SPARK_LOGS, Place
from compactor_bundling.bundles import Machine
from compactor_bundling.spark_jars import PINNED, PINNED_DELTA
from compactor_tables.measures import ICEBERG

_NOT_DEPLOYED = "not-deployed"
_GB_PER_VCPU, _IDLE_MINUTES = 4, 5
# "Endpoints and quotas for EMR Serverless" in its user guide.
_VCPUS_BY_DEFAULT = 16
_OUR_JOBS = "EMR Serverless names job runs when they start; the application bounds them."
_ASSETS_KEY = "Which key the bucket of the CDK's assets has is not known; its objects bound it."

#: What a job may do, added to a role or a policy.
MayRun = Callable[[Role], None]


class Spark(Construct):
    """The Spark resources of one stack.

    Args:
        scope: the stack.
        deployment: says which service runs jobs.
        script: the job's own program.
        state: where jobs log.
        encryption: what they name in each write.
        formats: formats of the tables that they change.
        rights: by a word for it, what jobs may do. A running cluster gets a managed policy for
            each, because one is limited to 6,144 characters; its owner attaches them to the nodes.

    Attributes:
        jars: of the tables, as spark-submit takes them; empty without a table.
        substitutions: name in a definition -> value, always text.
    """

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        script: Path,
        state: Place,
        encryption: str,
        formats: tuple[str, ...],
        rights: Mapping[str, MayRun],
    ) -> None:
        super().__init__(scope, "Spark")
        self._deployment, self._spark = deployment, deployment.spark
        source = REPOSITORY / "spark"
        machine = Machine(self._spark.architecture, self._spark.python)
        code = {
            "Script": s3_assets.Asset(self, "Script", path=str(script)),
            "AppZip": asset(self, "Packages", source, spark_application()),
            "DepsZip": asset(self, "Libraries", source, spark_libraries(machine)),
        }
        there = self._spark.jars_for(formats)
        uploaded = self._uploaded_jars(formats) if there is None else []
        self.jars = ",".join(there or [one.s3_object_url for one in uploaded])
        self.substitutions = {
            "AwsPartition": Aws.PARTITION,
            "AwsRegion": Aws.REGION,
            "SparkEncryption": encryption,
            "SparkLogUri": f"{state.uri}{SPARK_LOGS}",
            **{f"Spark{name}Uri": one.s3_object_url for name, one in code.items()},
            "EmrServerlessApplicationId": _NOT_DEPLOYED,
            "EmrServerlessJobRoleArn": _NOT_DEPLOYED,
        }
        assets = [*code.values(), *uploaded]
        if self._spark.kind == "serverless":
            self._role = own_role(self, "JobRole", "emr-serverless.amazonaws.com")
            for give in rights.values():
                give(self._role)
            self._may_read_assets(self._role, assets, there or ())
            self._make_application()
        else:
            for what, give in rights.items():
                about = f"{deployment.name}: what nodes of the EMR cluster need for {what}"
                policy = iam.ManagedPolicy(self, f"Nodes{what.title()}Policy", description=about)
                give(policy)
                if what == next(iter(rights)):
                    self._may_read_assets(policy, assets, there or ())

    def allow_workflow(self, role: iam.Role) -> None:
        """Allow the state machine to start, watch and stop jobs (Step Functions' manual)."""
        if self._spark.kind == "serverless":
            arn = self._application.attr_arn
            service = "emr-serverless"
            allow(role, [f"{service}:StartJobRun", f"{service}:TagResource"], [arn])
            of_a_run = [f"{service}:{one}" for one in ("GetJobRun", "CancelJobRun", "TagResource")]
            allow(role, of_a_run, [f"{arn}/jobruns/*"], wildcard=_OUR_JOBS)
            may_pass(role, self._role, "emr-serverless.amazonaws.com")
            return
        steps = ("AddJobFlowSteps", "DescribeStep", "CancelSteps")
        cluster = arn_of(role, "elasticmapreduce", "cluster", self._spark.cluster_id or "", "/")
        allow(role, [f"elasticmapreduce:{one}" for one in steps], [cluster])

    def _make_application(self) -> None:
        vcpus, vpc = self._spark.max_vcpus, self._deployment.vpc
        if vcpus > _VCPUS_BY_DEFAULT:
            Annotations.of(self).add_info(
                f"EMR Serverless lets an account use {_VCPUS_BY_DEFAULT} vCPUs unless you"
                f" ask for more, and spark.max_vcpus is {vcpus}: ask for a higher quota"
                ' "Max concurrent vCPUs per account" in Service Quotas. Until then oversized'
                " partitions take longer."
            )
        kind = emrserverless.CfnApplication
        self._application = kind(
            self,
            "Application",
            name=Stack.of(self).stack_name,
            type="Spark",
            release_label=self._spark.release,
            architecture=self._spark.architecture.upper(),
            auto_start_configuration=kind.AutoStartConfigurationProperty(enabled=True),
            auto_stop_configuration=kind.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=_IDLE_MINUTES
            ),
            maximum_capacity=kind.MaximumAllowedResourcesProperty(
                cpu=f"{vcpus} vCPU", memory=f"{vcpus * _GB_PER_VCPU} GB"
            ),
            network_configuration=None
            if vpc is None
            else kind.NetworkConfigurationProperty(
                subnet_ids=list(vpc.subnet_ids), security_group_ids=list(vpc.security_group_ids)
            ),
        )
        self.substitutions |= {
            "EmrServerlessApplicationId": self._application.attr_application_id,
            "EmrServerlessJobRoleArn": self._role.role_arn,
        }

    def _uploaded_jars(self, formats: Iterable[str]) -> list[s3_assets.Asset]:
        return [
            asset(self, f"Jar{number}", REPOSITORY / "spark", spark_jar(coordinate))
            for number, coordinate in enumerate(
                (one for name in formats for one in (PINNED if name == ICEBERG else PINNED_DELTA)),
                1,
            )
        ]

    def _may_read_assets(
        self, role: Role, assets: Iterable[s3_assets.Asset], jars: Iterable[str]
    ) -> None:
        """Allow reading the job's code, and jars that the operator has put on S3."""
        on_s3 = [one.removeprefix("s3://") for one in jars if one.startswith("s3://")]
        if on_s3:
            allow(role, ["s3:GetObject"], [f"arn:{Aws.PARTITION}:s3:::{one}" for one in on_s3])
        objects = [one.bucket.arn_for_objects(one.s3_object_key) for one in assets]
        allow(role, ["s3:GetObject"], objects, conditions=IN_THIS_ACCOUNT)
        # `cdk bootstrap` may have been given a customer's key, which an app cannot see. The
        # encryption context of S3's requests to KMS has the ARN of the object, or of the bucket if
        # that uses a bucket key ("Using server-side encryption with AWS KMS keys").
        arns = [*objects, *(one.bucket.bucket_arn for one in assets)]
        conditions = {
            "StringEquals": {
                "kms:ViaService": f"s3.{Aws.REGION}.{Aws.URL_SUFFIX}",
                "kms:EncryptionContext:aws:s3:arn": list(dict.fromkeys(arns)),
            }
        }
        keys = arn_of(role, "kms", "key", "*", "/")
        allow(role, ["kms:Decrypt"], [keys], conditions=conditions, wildcard=_ASSETS_KEY)


def without_spark(state: Place) -> dict[str, str]:
    """Return the substitutions of a definition whose states of Spark no run enters."""
    names = ("ScriptUri", "AppZipUri", "DepsZipUri", "Encryption")
    return {
        "AwsPartition": Aws.PARTITION,
        "AwsRegion": Aws.REGION,
        "SparkLogUri": f"{state.uri}{SPARK_LOGS}",
        **{f"Spark{name}": _NOT_DEPLOYED for name in names},
        "EmrServerlessApplicationId": _NOT_DEPLOYED,
        "EmrServerlessJobRoleArn": _NOT_DEPLOYED,
    }
