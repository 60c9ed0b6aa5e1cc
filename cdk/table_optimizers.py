"""Glue's optimizers: their role, and the optimizers that the stack creates itself."""

from __future__ import annotations

import math
from typing import Any

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_glue as glue
from constructs import Construct

from cdk.config import Config
from cdk.grants import allow, own_role
from cdk.maintained_tables import MaintainedTables
from compactor.settings.tables import parse_table
from compactor_tables.policies import USUAL, Rule

_Configuration = glue.CfnTableOptimizer.TableOptimizerConfigurationProperty
LAKE_FORMATION = "Lake Formation knows no resources for it; its grants bound what it gives."
# The optimizers' log groups ("Table optimizers" in the Glue guide).
_LOGS = ("iceberg-compaction", "iceberg-retention", "iceberg-orphan-file-deletion")


class TableOptimizers(Construct):
    """An optimizer of each kind for the tables of ``glue_optimizers``, and the role of all."""

    def __init__(self, scope: Construct, config: Config, tables: MaintainedTables) -> None:
        super().__init__(scope, "TableOptimizers")
        self._role = own_role(self, "Role", "glue.amazonaws.com", of_this_account=True)
        tables.may_rewrite(self._role)
        allow(self._role, ["lakeformation:GetDataAccess"], ["*"], wildcard=LAKE_FORMATION)
        self._may_log()
        for number, text in enumerate(config.glue_optimizers):
            self._optimize(number, text, config)

    def _may_log(self) -> None:
        groups = [
            Stack.of(self).format_arn(
                service="logs",
                resource="log-group",
                resource_name=f"/aws-glue/{name}/logs:*",
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
            for name in _LOGS
        ]
        actions = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
        allow(self._role, actions, groups, wildcard="Glue names the streams of its optimizers.")

    def _optimize(self, number: int, text: str, config: Config) -> None:
        table = parse_table(text)
        database, name = table.name
        request = config.tables_request
        matched = request.policies.of(text) if request is not None else None
        role = self._role.role_arn
        rule = matched.rule if matched is not None else USUAL
        for kind, (field, iceberg) in _configurations(rule).items():
            made = glue.CfnTableOptimizer(
                self,
                f"{_ident(kind)}{number}",
                catalog_id=Aws.ACCOUNT_ID,
                database_name=database,
                table_name=name,
                type=kind,
                table_optimizer_configuration=_Configuration(enabled=True, role_arn=role),
            )
            # CDK's own conversion loses the names in nested documents.
            document = {
                "RoleArn": role,
                "Enabled": True,
                field: {"IcebergConfiguration": iceberg},
            }
            made.add_property_override("TableOptimizerConfiguration", document)
            # Runs fail until the role has its rights, and after four failures Glue gives up.
            made.node.add_dependency(self._role)


def _configurations(rule: Rule) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return what a rule requires of each type of optimizer: CloudFormation's property, and it."""
    strategy = "sort" if rule.sort else "z-order" if rule.zorder else "binpack"
    return {
        "compaction": (
            "CompactionConfiguration",
            {"Strategy": strategy, "MinInputFiles": rule.min_files},
        ),
        "retention": (
            "RetentionConfiguration",
            {
                "SnapshotRetentionPeriodInDays": _days(max(rule.keep_days, rule.undo_days)),
                "NumberOfSnapshotsToRetain": rule.keep_versions,
                "CleanExpiredFiles": True,
            },
        ),
        "orphan_file_deletion": (
            "OrphanFileDeletionConfiguration",
            {"OrphanFileRetentionPeriodInDays": _days(rule.orphan_days)},
        ),
    }


def _days(days: float) -> int:
    return max(1, math.ceil(days))


def _ident(kind: str) -> str:
    return "".join(word.capitalize() for word in kind.split("_"))
