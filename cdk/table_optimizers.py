"""Glue's optimizers: their role, and the optimizers that the stack creates itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_glue as glue
from constructs import Construct

from cdk.config import Config
from cdk.grants import allow, own_role
from cdk.maintained_tables import MaintainedTables
from compactor.settings.tables import parse_table
from compactor_tables.optimizers import KINDS, wanted
from compactor_tables.orders import BINPACK, EXPIRE, ORPHANS, REWRITE, SORT, ZORDER, Order
from compactor_tables.policies import Rule

_Configuration = glue.CfnTableOptimizer.TableOptimizerConfigurationProperty
_DAY = 86_400.0
LAKE_FORMATION = "Lake Formation knows no resources for it; its grants bound what it gives."
# The optimizers' log groups ("Table optimizers" in the Glue guide).
_LOGS = ("iceberg-compaction", "iceberg-retention", "iceberg-orphan-file-deletion")


class TableOptimizers(Construct):
    """The role, and an optimizer of each kind for the tables of ``glue_optimizers``.

    Attributes:
        role: the role that Glue assumes; runs pass it to the optimizers that they configure.
    """

    def __init__(self, scope: Construct, config: Config, tables: MaintainedTables) -> None:
        super().__init__(scope, "TableOptimizers")
        self.role = own_role(self, "Role", "glue.amazonaws.com", of_this_account=True)
        tables.may_rewrite(self.role)
        allow(self.role, ["lakeformation:GetDataAccess"], ["*"], wildcard=LAKE_FORMATION)
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
        allow(self.role, actions, groups, wildcard="Glue names the streams of its optimizers.")

    def _optimize(self, number: int, text: str, config: Config) -> None:
        table = parse_table(text)
        database, name = table.name
        request = config.tables_request
        matched = request.policies.of(text) if request is not None else None
        role = self.role.role_arn
        order = _order(text, matched.rule if matched is not None else None)
        for kind in KINDS:
            given = wanted(order, role)[kind]
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
            document = _as_cloudformation_has_it(given)
            made.add_property_override("TableOptimizerConfiguration", document)
            # Runs fail until the role has its rights, and after four failures Glue gives up.
            made.node.add_dependency(self.role)


def _order(text: str, rule: Rule | None) -> Order:
    """Return what a rule requires of Glue; the defaults without a rule."""
    steps = (REWRITE, EXPIRE, ORPHANS)
    if rule is None:
        return Order(run_id="", table=text, engine="glue", steps=steps)
    return Order(
        run_id="",
        table=text,
        engine="glue",
        steps=steps,
        how=SORT if rule.sort else ZORDER if rule.zorder else BINPACK,
        min_files=rule.min_files,
        keep_seconds=rule.keep_days * _DAY,
        keep_versions=rule.keep_versions,
        orphan_seconds=rule.orphan_days * _DAY,
        undo_seconds=rule.undo_days * _DAY,
    )


def _as_cloudformation_has_it(given: Any) -> Any:
    """Return a document of the API in CloudFormation's form: the names are capitalized."""
    if not isinstance(given, Mapping):
        return given
    return {
        name[0].upper() + name[1:]: _as_cloudformation_has_it(value)
        for name, value in given.items()
    }


def _ident(kind: str) -> str:
    return "".join(word.capitalize() for word in kind.split("_"))
