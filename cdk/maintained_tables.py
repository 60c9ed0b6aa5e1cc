"""The tables that a deployment maintains: where they are, and the rights to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk.config import Config
from cdk.grants import Role, allow, may_delete, may_list, may_read, may_write
from cdk.readers import DESTINATION, MAINTAINED
from cdk.storage import Place
from compactor.settings.tables import parse_table
from compactor.settings.uris import S3Uri

_PATTERNS = "Patterns of the configuration say which tables; which there are is known to a run."
_ANY = "*"


@dataclass(frozen=True, slots=True)
class MaintainedTables:
    """Locations and Glue resources of the tables that a deployment maintains.

    Attributes:
        places: where the tables are stored.
        catalog_arns: resources for reading or changing a table: catalog, databases, tables.
        database_arns: resources for searching for tables.
        default_arns: resources that Athena looks up before any table: the catalog and its database
            ``default``.
    """

    places: Sequence[Place]
    catalog_arns: Sequence[str]
    database_arns: Sequence[str]
    default_arns: Sequence[str]

    @classmethod
    def of(cls, scope: Construct, config: Config) -> MaintainedTables:
        """Return the tables that a configuration names."""
        stack = Stack.of(scope)

        def arn(resource: str, name: str | None = None) -> str:
            if name is None:
                return stack.format_arn(service="glue", resource=resource)
            return stack.format_arn(service="glue", resource=resource, resource_name=name)

        named = sorted({*_named(config)})
        databases = dict.fromkeys(arn("database", database) for database, _ in named)
        tables = [arn("table", f"{database}/{table}") for database, table in named]
        everywhere = [arn("database", _ANY), arn("table", f"{_ANY}/{_ANY}")]
        return cls(
            [*_places(scope, config)],
            [arn("catalog"), *databases, *tables] if named else [],
            [arn("catalog"), *everywhere] if named else [],
            [arn("catalog"), arn("database", "default")] if named else [],
        )

    def may_look(self, role: Role) -> None:
        """Allow finding tables in Glue, and below the prefixes on S3."""
        if self.database_arns:
            actions = ["glue:GetDatabases", "glue:GetTables"]
            allow(role, actions, self.database_arns, wildcard=_PATTERNS)
        for place in self.places:
            may_list(role, place)

    def may_read_metadata(self, role: Role) -> None:
        """Allow reading the tables' metadata; this includes data files, stored next to it."""
        self._may_ask(role, ["glue:GetTable"])
        for place in self.places:
            may_read(role, place)

    def may_ask_optimizers(self, role: Role) -> None:
        """Allow checking whether Glue's optimizers of a table are enabled."""
        self._may_ask(role, ["glue:GetTable", "glue:GetTableOptimizer"])

    def may_rewrite(self, role: Role) -> None:
        """Allow committing to tables, writing their files, and deleting unreferenced ones."""
        self._may_ask(role, ["glue:GetDatabase", "glue:GetTable", "glue:UpdateTable"])
        for place in self.places:
            may_read(role, place)
            may_write(role, place)
            # Without this right VACUUM succeeds but deletes nothing.
            may_delete(role, place)

    def may_query(self, role: Role) -> None:
        """Allow what Athena's statements need of Glue, in addition to ``may_rewrite``.

        Athena looks up the database ``default`` first, and lists databases, tables and partitions
        ("Configure access to databases and tables in the AWS Glue Data Catalog" in its user guide,
        ``athena/latest/ug/fine-grained-access-to-glue-resources.html``). CreateDatabase, which is
        in the guide's examples, is only for making ``default``.
        """
        names = ("GetDatabases", "GetTables", "GetPartition", "GetPartitions", "BatchGetPartition")
        self._may_ask(role, [f"glue:{one}" for one in names])
        if self.default_arns:
            allow(role, ["glue:GetDatabase", "glue:GetDatabases"], self.default_arns)

    def _may_ask(self, role: Role, actions: Sequence[str]) -> None:
        if self.catalog_arns:
            allow(role, actions, self.catalog_arns, wildcard=_PATTERNS)


def place_of_reports(scope: Construct, config: Config) -> Place:
    """Return where runs write if only maintenance is deployed, in an existing bucket."""
    where, key = config.run.state, None
    if DESTINATION in config.kms_keys:
        key = kms.Key.from_key_arn(scope, "Key", config.kms_keys[DESTINATION])
    bucket = s3.Bucket.from_bucket_name(scope, "State", where.bucket)
    return Place(bucket, where.prefix, key, is_ours=True)


def _named(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the database and table of each pattern and address; ``*`` matches anything."""
    request = config.tables_request
    patterns = request.glue_tables if request is not None else ()
    for pattern in patterns:
        database, _, table = pattern.partition(".")
        yield database, table or _ANY
    addresses = (*(request.tables if request is not None else ()), *config.glue_optimizers)
    for address in map(parse_table, addresses):
        if address.kind == "glue":
            yield address.name[0], address.name[1]


def _places(scope: Construct, config: Config) -> Iterator[Place]:
    key: kms.IKey | None = None
    if MAINTAINED in config.kms_keys:
        key = kms.Key.from_key_arn(scope, "TablesKey", config.kms_keys[MAINTAINED])
    buckets: dict[str, s3.IBucket] = {}
    for uri in config.maintenance_locations:
        where = S3Uri.parse("maintenance_locations", uri)
        if where.bucket not in buckets:
            ident = f"Tables{len(buckets)}"
            buckets[where.bucket] = s3.Bucket.from_bucket_name(scope, ident, where.bucket)
        yield Place(buckets[where.bucket], where.prefix, key)
