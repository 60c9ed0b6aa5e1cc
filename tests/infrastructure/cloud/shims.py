"""What moto's CloudFormation lacks to take a stack of the CDK app.

moto 5.2.5 leaves out resources of types that it does not know, and answers None for references
to them. The types below are noted with their properties instead, and have names and ARNs. The
policies of buckets are noted, not attached: moto knows no conditions and would refuse every PUT.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from moto.cloudformation import parsing
from moto.cloudformation.models import Stack
from moto.core.common_models import CloudFormationModel
from moto.glue.exceptions import EntityNotFoundException
from moto.glue.responses import GlueResponse
from moto.iam import models as iam_models
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.logs.models import LogGroup
from moto.s3.models import s3_backends
from moto.s3.responses import S3Response
from moto.stepfunctions.models import StateMachine

from compactor_local import replace

_ARNS: Mapping[str, str] = {
    "AWS::Athena::WorkGroup": "arn:aws:athena:{region}:{account}:workgroup/{name}",
    "AWS::CloudWatch::Alarm": "arn:aws:cloudwatch:{region}:{account}:alarm:{name}",
    "AWS::CloudWatch::CompositeAlarm": "arn:aws:cloudwatch:{region}:{account}:alarm:{name}",
    "AWS::EMRServerless::Application": (
        "arn:aws:emr-serverless:{region}:{account}:/applications/{name}"
    ),
    "AWS::Glue::TableOptimizer": "{name}",
    "AWS::IAM::ServiceLinkedRole": "arn:aws:iam::{account}:role/aws-service-role/{name}",
    "AWS::Lambda::EventInvokeConfig": "{name}",
    "AWS::Logs::MetricFilter": "{name}",
    "AWS::S3::BucketPolicy": "{name}",
    "AWS::SNS::Subscription": "arn:aws:sns:{region}:{account}:{name}",
    "AWS::SNS::TopicPolicy": "{name}",
    "AWS::SQS::QueuePolicy": "{name}",
    # What it does is tested apart (test_notifications.py).
    "Custom::S3BucketNotifications": "{name}",
    "AWS::Scheduler::Schedule": "arn:aws:scheduler:{region}:{account}:schedule/default/{name}",
    "AWS::Scheduler::ScheduleGroup": "arn:aws:scheduler:{region}:{account}:schedule-group/{name}",
}
TYPES = frozenset(_ARNS)
#: Amazon's own policies that roles of the app have; moto knows nobody else's.
MANAGED_POLICIES: tuple[str, ...] = ()
# A statement about the CDK itself, and no resource.
IGNORED = frozenset({"AWS::CDK::Metadata"})
_SUBSTITUTION = re.compile(r"\$\{([A-Za-z0-9_]+)\}")

noted: list[dict[str, Any]] = []
"""Every resource of these types, as a mapping; references in its properties are filled in."""


def install() -> None:
    """Make moto's CloudFormation know these types; once per process."""
    for type_name, arn in _ARNS.items():
        kind = _stand_in(type_name, arn)
        if type_name.startswith("Custom::"):
            # moto would run the function in a container.
            replace(parsing, "CustomModel", kind)
    _read_definitions()
    _have_no_optimizers()
    _tell_of_event_bridge()
    _be_quick()
    # As CloudFormation has it; moto leaves the last part out.
    replace(LogGroup, "get_cfn_attribute", lambda group, _: f"{group.arn}:*")


def _stand_in(type_name: str, arn_format: str) -> type:
    """moto finds a type's class among the subclasses that there are."""

    def create(
        cls: Any, name: str, document: Any, account_id: str, region_name: str, **more: Any
    ) -> Any:
        resource = cls()
        properties = document["Properties"]
        resource.name = str(properties.get("Name") or name)
        resource.arn = arn_format.format(name=resource.name, region=region_name, account=account_id)
        about = {"type": type_name, "id": more["LogicalId"], "name": resource.name}
        noted.append({**about, "arn": resource.arn, "properties": properties})
        return resource

    make: Any = create
    made: Any = classmethod(make)
    members = {
        "cloudformation_name_type": staticmethod(lambda: ""),
        "cloudformation_type": staticmethod(lambda: type_name),
        "create_from_cloudformation_json": made,
        "update_from_cloudformation_json": made,
        "delete_from_cloudformation_json": classmethod(lambda *_: None),
        "has_cfn_attr": classmethod(lambda _, attribute: attribute in _ATTRIBUTES),
        "get_cfn_attribute": lambda self, attribute: getattr(self, _ATTRIBUTES[attribute]),
        "physical_resource_id": property(lambda self: self.name),
    }
    kind = type(type_name.replace(":", ""), (CloudFormationModel,), members)
    _KEPT.append(kind)
    return kind


_ATTRIBUTES = {"Arn": "arn", "ApplicationId": "name", "Name": "name"}
# Subclasses are known by weak references.
_KEPT: list[type] = []


def _have_no_optimizers() -> None:
    """moto's Glue knows no table optimizers; so no table has one."""

    def answer(_: Any) -> Any:
        raise EntityNotFoundException("Table optimizer not found")

    # Found by its name.
    GlueResponse.get_table_optimizer = answer  # type: ignore[attr-defined] # see above


def _tell_of_event_bridge() -> None:
    """moto keeps that a bucket tells EventBridge, and leaves it out when it is asked."""
    original: Any = vars(S3Response)["get_bucket_notification"]

    def answer(response: Any) -> Any:
        status, headers, body = original(response)
        found = response.backend.get_bucket_notification_configuration(response.bucket_name)
        if found is not None and found.event_bridge is not None:
            # Without any other notification the root is empty.
            opened = re.sub(
                r"(<NotificationConfiguration[^>]*)/>", r"\1></NotificationConfiguration>", body
            )
            inner, _, end = opened.rpartition("</")
            body = f"{inner}<EventBridgeConfiguration/></{end}"
        return status, headers, body

    replace(S3Response, "get_bucket_notification", answer)


def _be_quick() -> None:
    """Do not read what nobody asks for; it is most of what a deployment takes.

    moto makes Amazon's 1,500 policies anew for each of seven partitions after each reset, and
    reads templates, which are JSON here, as YAML.
    """
    every = json.loads(aws_managed_policies_data)
    few = {name: every[name] for name in MANAGED_POLICIES}
    replace(iam_models, "aws_managed_policies_data", json.dumps(few))
    replace(Stack, "parse_template", staticmethod(json.loads))


def _read_definitions() -> None:
    """State machines whose definition is an asset, with its substitutions."""
    original: Any = vars(StateMachine)["create_from_cloudformation_json"].__func__

    def create(
        cls: Any, name: str, document: Any, account_id: str, region_name: str, **more: Any
    ) -> Any:
        properties = dict(document["Properties"])
        if place := properties.pop("DefinitionS3Location", None):
            stored: Any = s3_backends[account_id]["aws"].get_object(place["Bucket"], place["Key"])
            properties["DefinitionString"] = stored.value.decode("utf-8")
        given = properties.pop("DefinitionSubstitutions", {})
        properties["DefinitionString"] = substitute(properties["DefinitionString"], given)
        filled = {**document, "Properties": properties}
        return original(cls, name, filled, account_id, region_name, **more)

    make: Any = create
    replace(StateMachine, "create_from_cloudformation_json", classmethod(make))


def substitute(definition: str, given: Mapping[str, Any]) -> str:
    """A definition with its substitutions, which must be exactly those that it has.

    Raises:
        ValueError: one is missing, is not used, is not text, or breaks the JSON.
    """
    wanted = set(_SUBSTITUTION.findall(definition))
    if wanted != given.keys():
        raise ValueError(f"substitutions that do not fit: {sorted(wanted ^ given.keys())}")
    wrong = {name: value for name, value in given.items() if not isinstance(value, str)}
    if wrong:
        raise ValueError(f"substitutions that are no text: {wrong}")
    filled = _SUBSTITUTION.sub(lambda match: given[match[1]], definition)
    json.loads(filled)
    return filled
