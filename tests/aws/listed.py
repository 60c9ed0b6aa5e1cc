"""The list of the smoke test."""

from __future__ import annotations

from tests.aws import run_checks, s3_checks, table_checks
from tests.aws.checks import Check

_STATE = "404 on missing state under the prefix condition"
_UPSERT = "table and upsert through Glue"

CHECKS = (
    Check("a conditional PUT twice", s3_checks.put_twice),
    Check("the full-object CRC32", s3_checks.full_object_crc32),
    Check("a bucket that demands SSE headers", s3_checks.demands_encryption),
    Check(
        "a bucket that denies unsigned payloads",
        s3_checks.demands_signed_payloads,
        known="over TLS runs send UNSIGNED-PAYLOAD with their checksums",
    ),
    Check("events with a customer key", run_checks.events),
    Check(_STATE, run_checks.missing_state),
    Check("rights of the Map Run", run_checks.map_run, needs=(_STATE,)),
    Check("a bucket that demands a VPC endpoint", run_checks.demands_an_endpoint),
    Check("redrive after a stopped execution", run_checks.redrive),
    Check("an oversized partition on EMR Serverless", run_checks.oversized),
    Check("clean-up by ETag", run_checks.clean_up, needs=(_STATE,)),
    Check("clean-up by ETag in a versioned bucket", run_checks.clean_up_versioned),
    # Last of its destination: once a table shows outputs, their sources stay for an hour.
    Check("the readers' table in Athena", table_checks.readers),
    Check(_UPSERT, table_checks.upsert),
    Check("OPTIMIZE and VACUUM by Athena", table_checks.athena_maintenance, needs=(_UPSERT,)),
    Check("an alarm by force", run_checks.alarm),
)
"""In the order in which they run: each leaves what later ones count on."""
