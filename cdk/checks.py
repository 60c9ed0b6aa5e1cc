"""The checks of every synth: cdk-nag's AwsSolutions, CDK's own rules, and ours in Guard.

Intended findings are acknowledged next to their construct, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks
from constructs import IConstruct

from cdk.config import Config
from compactor.errors import InvalidInput
from compactor.settings.uris import S3Uri

_RULES = Path(__file__).with_name("rules.guard")
_DELETION = Path(__file__).with_name("deletion.guard")
_STRICT = "@aws-cdk/core:validateAgainstDefaultRules"
#: Objects of the state that clean-up may delete. A commit's name ends in its number and .json.gz,
#: so this pattern matches no commit, whatever a partition is called.
CHECKPOINTS = "partitions/*commits/*.checkpoint.json.gz"


def attach(app: cdk.App, config: Config) -> None:
    """Make every synth of an app fail on findings that are not acknowledged.

    Raises:
        InvalidInput: the app lacks the feature flag without which some findings only warn.
    """
    if not app.node.try_get_context(_STRICT):
        raise InvalidInput(
            _STRICT, None, "true, as in cdk/flags.json: else findings of Guard only warn"
        )
    guard = _guard(tuple(guard_rules(config).items()))
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), guard)


# Cached because each plugin holds some 200 MB that the CDK never frees.
@cache
def _guard(rules: tuple[tuple[str, str], ...]) -> cdk.CloudFormationValidatePlugin:
    sources = [cdk.ValidationRuleSource(name=name, content=text) for name, text in rules]
    return cdk.CloudFormationValidatePlugin(guard_rules=sources)


def guard_rules(config: Config) -> dict[str, str]:
    """Return our own rules for a configuration: name -> text in the language of Guard."""
    # An empty list would make a pattern that matches every resource.
    allowed = ["no resource"]
    if config.deletes:
        allowed.append(f"/{config.run.source.root.prefix}*")
        allowed.append(f"/{config.run.state.prefix}{CHECKPOINTS}")
    for uri in config.maintenance_locations:
        # Maintenance deletes files of these tables that are no longer referenced.
        allowed.append(f"/{S3Uri.parse('maintenance_locations', uri).prefix}*")
    # Guard delimits patterns by slashes, so slashes inside them must be escaped as well.
    patterns = [re.escape(end).replace("/", "\\/") for end in allowed]
    deletion = _DELETION.read_text(encoding="utf-8")
    return {
        "rules": _RULES.read_text(encoding="utf-8"),
        "deletion": deletion.replace("/ALLOWED/", f"/({'|'.join(patterns)})$/"),
    }


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept one finding on a construct and its children.

    Args:
        construct: the construct with the finding.
        rule: as the finding names it, such as ``AwsSolutions-S1`` or
            ``AwsSolutions-IAM5[Resource::*]``.
        reason: why this is intended.
    """
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=rule, reason=reason))


def acknowledge_wildcard(construct: IConstruct, resource: str, reason: str) -> None:
    """Accept a resource with a wildcard in the policies of a construct.

    Args:
        construct: the role or policy.
        resource: the resource as in the statement, tokens included.
        reason: why the wildcard is intended.
    """
    name = _as_found(cdk.Stack.of(construct).resolve(resource))
    acknowledge(construct, f"AwsSolutions-IAM5[Resource::{name}]", reason)


def _as_found(value: Any) -> str:
    # cdk-nag writes tokens of CloudFormation as <LogicalId> and <LogicalId.Attribute>.
    if not isinstance(value, Mapping):
        return str(value)
    if "Ref" in value:
        return f"<{value['Ref']}>"
    if "Fn::GetAtt" in value:
        return f"<{'.'.join(value['Fn::GetAtt'])}>"
    separator, parts = value["Fn::Join"]
    return str(separator).join(_as_found(part) for part in parts)
