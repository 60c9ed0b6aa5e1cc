"""A stack of the CDK app on moto, as its API shows it once it is there."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from compactor_local.definition import ACCOUNT, REGION
from tests.infrastructure.cloud.assembly import Assembly, Asset
from tests.infrastructure.cloud.iam import Role
from tests.infrastructure.cloud.running import Cloud

# Where `cdk bootstrap` leaves its version, which every template asks for.
_BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"


@dataclass(frozen=True)
class Deployment:
    """A stack that was created.

    Attributes:
        cloud: where it is.
        assembly: what it was created from.
    """

    cloud: Cloud
    assembly: Assembly

    @cached_property
    def outputs(self) -> dict[str, str]:
        """The stack's outputs."""
        client = self.cloud.client("cloudformation")
        (stack,) = client.describe_stacks(StackName=self.assembly.name)["Stacks"]
        return {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", ())}

    @cached_property
    def physical_ids(self) -> dict[str, str]:
        """Logical id -> what the resource is called."""
        client = self.cloud.client("cloudformation")
        found = client.describe_stack_resources(StackName=self.assembly.name)["StackResources"]
        return {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in found}

    @cached_property
    def functions(self) -> dict[str, Mapping[str, Any]]:
        """Name of a function of the bundles -> its configuration, as Lambda tells it."""
        client = self.cloud.client("lambda")
        return {
            self.physical_ids[name]: client.get_function_configuration(
                FunctionName=self.physical_ids[name]
            )
            for name in self.assembly.functions()
        }

    def code(self, function: str) -> Path:
        """The directory that a function's code was packed from."""
        found = self.assembly.resources("AWS::Lambda::Function")
        (name,) = [name for name in found if self.physical_ids[name] == function]
        key = found[name]["Code"]["S3Key"]
        (asset,) = [asset for asset in self.assembly.assets() if asset.key == key]
        return asset.path

    @cached_property
    def noted(self) -> list[dict[str, Any]]:
        """Resources that moto has no type for."""
        return self.cloud.noted()

    @cached_property
    def machines(self) -> list[Mapping[str, Any]]:
        """The state machines, as Step Functions tells them."""
        client = self.cloud.client("stepfunctions")
        found = client.list_state_machines()["stateMachines"]
        return [
            client.describe_state_machine(stateMachineArn=one["stateMachineArn"]) for one in found
        ]

    @property
    def machine(self) -> Mapping[str, Any]:
        """The state machine; standalone mode has none."""
        (found,) = self.machines
        return found

    @cached_property
    def roles(self) -> dict[str, Role]:
        """What applies to each role: by handler for functions, else by the role's logical id."""
        client = self.cloud.client("iam")
        handlers = {one["Role"]: one["Handler"].split(".")[-2] for one in self.functions.values()}
        roles = {}
        for name in self.assembly.resources("AWS::IAM::Role"):
            arn = client.get_role(RoleName=self.physical_ids[name])["Role"]["Arn"]
            policies = dict(_documents(client, self.physical_ids[name]))
            roles[handlers.get(arn, name)] = Role(arn, policies, self._resource_policies)
        managed = self.assembly.resources("AWS::IAM::ManagedPolicy")
        if managed:
            # The owner of a running cluster attaches all of them to its nodes' role.
            policies = {name: _managed(client, self.physical_ids[name]) for name in managed}
            roles["nodes"] = Role(
                f"arn:aws:iam::{ACCOUNT}:role/nodes", policies, self._resource_policies
            )
        return roles

    @property
    def spark(self) -> Role:
        """The role of the Spark job."""
        (found,) = [
            one for name, one in self.roles.items() if name.startswith(("SparkJob", "nodes"))
        ]
        return found

    @cached_property
    def _resource_policies(self) -> dict[str, Mapping[str, Any]]:
        """ARN of a bucket or queue of the stack -> its policy."""
        found = {}
        for one in self.noted:
            properties = one["properties"]
            if one["type"] == "AWS::S3::BucketPolicy":
                found[f"arn:aws:s3:::{properties['Bucket']}"] = properties["PolicyDocument"]
            if one["type"] == "AWS::SQS::QueuePolicy":
                for queue in properties["Queues"]:
                    name = queue.rpartition("/")[2]
                    found[account_arn("sqs", name)] = properties["PolicyDocument"]
        return found

    def read(self) -> Deployment:
        """Ask for everything now, so that the cloud may go."""
        for name in (
            "outputs",
            "physical_ids",
            "functions",
            "noted",
            "machines",
            "roles",
            "encryption_keys",
        ):
            getattr(self, name)
        return self

    @cached_property
    def encryption_keys(self) -> dict[str, str]:
        """Bucket -> ARN of the KMS key that encrypts what is put there."""
        client = self.cloud.client("s3")
        found = {}
        for bucket in (one["Name"] for one in client.list_buckets()["Buckets"]):
            with contextlib.suppress(client.exceptions.ClientError):
                answer = client.get_bucket_encryption(Bucket=bucket)
                (rule,) = answer["ServerSideEncryptionConfiguration"]["Rules"]
                default = rule["ApplyServerSideEncryptionByDefault"]
                if key := default.get("KMSMasterKeyID"):
                    found[bucket] = key
        return found


def _documents(iam: Any, role: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        yield name, _decoded(iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"])


def _managed(iam: Any, arn: str) -> Mapping[str, Any]:
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    found = iam.get_policy_version(PolicyArn=arn, VersionId=version)
    return _decoded(found["PolicyVersion"]["Document"])


def _decoded(document: Any) -> Mapping[str, Any]:
    if isinstance(document, str):
        document = json.loads(unquote(document))
    found: Mapping[str, Any] = document
    return found


def deploy(
    on: Cloud, assembly: Assembly, buckets: Collection[str] = (), *, with_code: bool = True
) -> Deployment:
    """Do what `cdk deploy` does: publish the assets, create the stack.

    Args:
        on: a cloud with no other stack in it.
        assembly: what to deploy.
        buckets: those that the stack expects to be there.
        with_code: publish what functions are made of; else an empty archive stands for it.
    """
    for bucket in {*buckets, *(asset.bucket for asset in assembly.assets())}:
        on.create_bucket(bucket)
    s3 = on.client("s3")
    for asset in assembly.assets():
        body = _packed(asset, with_code) if asset.zipped else asset.path.read_bytes()
        s3.put_object(Bucket=asset.bucket, Key=asset.key, Body=body)
    on.client("ssm").put_parameter(Name=_BOOTSTRAP, Value="30", Type="String")
    on.client("cloudformation").create_stack(
        StackName=assembly.name,
        TemplateBody=assembly.template_path.read_text(encoding="utf-8"),
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )
    return Deployment(on, assembly)


def _packed(asset: Asset, with_code: bool) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(asset.path.rglob("*")) if with_code else ():
            archive.write(path, path.relative_to(asset.path))
    return packed.getvalue()


def account_arn(service: str, resource: str) -> str:
    """An ARN in the account that moto stands for."""
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"
