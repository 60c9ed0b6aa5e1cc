"""Start settings for a table, by its address, and a session that has the table's catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaPackage  # type: ignore[import-untyped] # py4j has no annotations
from pyspark.sql import SparkSession

from compactor.errors import InvalidInput
from compactor.settings.encryption import AES256, encryptions
from compactor.settings.tables import DELTA, TableAddress
from compactor_spark.log_store import use_conditional_commits
from compactor_spark.session import pinned_session

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

_EXTENSIONS = "spark.sql.extensions"
_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_ICEBERG_EXTENSION = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_LEAST_TASKS = 8
_TASKS = "spark.sql.shuffle.partitions"
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_JARS_ACCEPTED = (
    "the jars of {} among Spark's own (docs/tables.md says which, and how a run gets them; of a"
    " deployment the key spark.jars does)"
)


def session_settings(address: TableAddress, given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that Spark must be started with for a table.

    Args:
        address: of the table.
        given: spark-submit's settings, and those for other tables.
    """
    names = [name.strip() for name in given.get(_EXTENSIONS, "").split(",") if name.strip()]
    said = {_EXTENSIONS: ",".join(dict.fromkeys([*names, _extension(address)]))}
    if address.kind == DELTA and _SESSION_CATALOG not in given:
        # Delta looks for its catalog in whichever session its thread used last.
        said[_SESSION_CATALOG] = _DELTA_CATALOG
    return said


def _extension(address: TableAddress) -> str:
    return _DELTA_EXTENSION if address.kind == DELTA else _ICEBERG_EXTENSION


def table_session(
    session: SparkSession,
    address: TableAddress,
    client: S3Client,
    warehouse: str,
    *,
    deletes: bool = True,
) -> SparkSession:
    """Return a separate session that can find the table; the table is not accessed yet.

    Args:
        session: started with :func:`session_settings`.
        address: of the table.
        client: its endpoint and region are used.
        warehouse: URI below which a catalog without a location of its own creates new tables.
        deletes: whether the job may delete files of a table in Glue.

    Raises:
        InvalidInput: Spark lacks the jars or the extension for the table.
    """
    _require_jars(session, address)
    own = pinned_session(session)
    if str(session.sparkContext.master).startswith("local"):
        # The defaults, 200 and 50, are for clusters: here they cost more than a small merge itself.
        tasks = str(max(_LEAST_TASKS, 4 * session.sparkContext.defaultParallelism))
        names = (_TASKS, "spark.databricks.delta.snapshotPartitions")
        _set(own, dict.fromkeys(names, tasks))
    if address.kind == DELTA:
        _set(own, delta_settings(client) | _vacuum_settings(own))
        use_conditional_commits(own)
    else:
        _set(own, iceberg_settings(address, client, warehouse, deletes=deletes))
    return own


def table_name(address: TableAddress) -> str:
    """Return the table's name in its session: a URI, or catalog, namespace and name."""
    return address.uri if address.kind == DELTA else ".".join((address.catalog, *address.name))


def _require_jars(session: SparkSession, address: TableAddress) -> None:
    jvm: Any = session._jvm
    if address.kind == DELTA:
        named, found = "Delta Lake", jvm.io.delta.sql.DeltaSparkSessionExtension
    else:
        named, found = "Iceberg", jvm.org.apache.iceberg.spark.SparkCatalog
    if isinstance(found, JavaPackage):
        raise InvalidInput("spark.jars", None, _JARS_ACCEPTED.format(named))
    loaded = session.sparkContext.getConf().get(_EXTENSIONS) or ""
    if _extension(address) not in loaded:
        raise InvalidInput(_EXTENSIONS, loaded, f"{_extension(address)} among them")


def iceberg_settings(
    address: TableAddress, client: S3Client, warehouse: str, *, deletes: bool = True
) -> dict[str, str]:
    """Return the settings for the catalog of an Iceberg table; see :func:`table_session`."""
    catalog = f"spark.sql.catalog.{address.catalog}"
    said = {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        # Another writer may commit at any time.
        f"{catalog}.cache-enabled": "false",
    }
    if address.kind == "glue":
        said[f"{catalog}.catalog-impl"] = "org.apache.iceberg.aws.glue.GlueCatalog"
        said[f"{catalog}.warehouse"] = warehouse
        if not deletes:
            # A task without rows deletes its data file, although it was never stored, and fails if
            # the job may not delete. Files of a commit that lost remain as orphans.
            said[f"{catalog}.s3.delete-enabled"] = "false"
    elif address.kind == "rest":
        said[f"{catalog}.type"] = "rest"
        said[f"{catalog}.uri"] = address.uri
    else:
        said[f"{catalog}.type"] = "jdbc"
        said[f"{catalog}.uri"] = f"jdbc:{address.uri.replace('///', '', 1)}"
        # The schema that pyiceberg creates, with a column for views.
        said[f"{catalog}.jdbc.schema-version"] = "V1"
        said[f"{catalog}.warehouse"] = warehouse
    endpoint = _endpoint(client)
    if endpoint:
        said[f"{catalog}.s3.endpoint"] = endpoint
        said[f"{catalog}.s3.path-style-access"] = "true"
    region = client.meta.region_name
    said |= {f"{catalog}.client.region": region} if region else {}
    return said | _iceberg_encryption(catalog)


def _iceberg_encryption(catalog: str) -> dict[str, str]:
    """Return the properties by which S3FileIO names the encryption of its writes.

    S3FileIO knows no buckets, so this is the encryption of all buckets without one of their own
    ("S3 Server Side Encryption" in "Iceberg AWS Integrations").
    """
    found = encryptions().others
    if not found.algorithm:
        return {}
    key = {f"{catalog}.s3.sse.key": found.key_arn} if found.key_arn else {}
    return {f"{catalog}.s3.sse.type": "s3" if found.algorithm == AES256 else "kms", **key}


def delta_settings(client: S3Client) -> dict[str, str]:
    """Return the session settings for Delta tables; see :func:`table_session`."""
    file_system = "org.apache.hadoop.fs.s3a.S3AFileSystem"
    said = {
        _SESSION_CATALOG: _DELTA_CATALOG,
        "fs.s3.impl": file_system,
        "fs.s3a.aws.credentials.provider": (
            "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
        ),
    }
    endpoint = _endpoint(client)
    if endpoint:
        said["fs.s3a.endpoint"] = endpoint
        said["fs.s3a.path.style.access"] = "true"
    region = client.meta.region_name
    said |= {"fs.s3a.endpoint.region": region} if region else {}
    return said | _hadoop_encryption()


def _hadoop_encryption() -> dict[str, str]:
    """Return the settings by which S3A names the encryption of its writes.

    "Working with Encrypted S3 Data" and "Configuring different S3 buckets with Per-Bucket
    Configuration" in the documentation of hadoop-aws.
    """
    found = encryptions()
    places = {"fs.s3a": found.others}
    places |= {f"fs.s3a.bucket.{bucket}": one for bucket, one in found.by_bucket.items()}
    said: dict[str, str] = {}
    for place, one in places.items():
        if one.algorithm:
            said[f"{place}.encryption.algorithm"] = AES256 if one.algorithm == AES256 else "SSE-KMS"
        if one.key_arn:
            said[f"{place}.encryption.key"] = one.key_arn
    return said


def _vacuum_settings(session: SparkSession) -> dict[str, str]:
    """Return settings that make VACUUM faster.

    By default VACUUM of Delta 4.2 lists in 10,000 tasks and deletes files sequentially.

    Args:
        session: its number of shuffle partitions is used for listing, too.
    """
    return {
        _LISTING_TASKS: str(session.conf.get(_TASKS)),
        "spark.databricks.delta.vacuum.parallelDelete.enabled": "true",
    }


def _endpoint(client: S3Client) -> str:
    """Return the endpoint of an S3 store other than AWS; empty for AWS."""
    url = client.meta.endpoint_url
    return "" if ".amazonaws.com" in url else url


def _set(session: SparkSession, said: Mapping[str, str]) -> None:
    """Apply settings, except those that spark-submit has set."""
    given = session.sparkContext.getConf()
    for name, value in said.items():
        if not given.contains(name) and not given.contains(f"spark.hadoop.{name}"):
            session.conf.set(name, value)
