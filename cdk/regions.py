"""What a region lacks of what a deployment may make."""

from __future__ import annotations

import botocore.session
from botocore.exceptions import UnknownRegionError

_SERVICE = "emr-serverless"
# Regions without AWS::Glue::TableOptimizer in CloudFormation's registry, as cfn-lint has it.
_WITHOUT_OPTIMIZERS = frozenset({"cn-north-1", "eu-south-2", "us-gov-west-1"})
# Regional availability in the page of the release ("AWS runtime for Apache Spark
# (emr-spark-8.0.0)", emr/latest/EMR-Serverless-UserGuide/release-version-emr-spark-8.0.0.html).
_SPARK_8, _WITHOUT_SPARK_8 = "emr-spark-8.", ("me-south-1", "me-central-1")


def missing_in(region: str, release: str) -> str:
    """Return what of EMR Serverless a region lacks; empty if nothing is known to be missing.

    Args:
        region: a region, such as ``me-south-1``.
        release: an EMR release, such as ``emr-spark-8.1.0``.
    """
    session = botocore.session.get_session()
    try:
        partition = session.get_partition_for_region(region)
    except UnknownRegionError:
        return ""
    # A region that botocore does not know at all may be newer than the lock.
    known = region in session.get_available_regions("lambda", partition)
    if known and region not in session.get_available_regions(_SERVICE, partition):
        return "EMR Serverless"
    return release if release.startswith(_SPARK_8) and region in _WITHOUT_SPARK_8 else ""


def optimizers_missing_in(region: str) -> bool:
    """Return whether CloudFormation has no ``AWS::Glue::TableOptimizer`` in a region."""
    return region in _WITHOUT_OPTIMIZERS
