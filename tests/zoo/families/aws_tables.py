"""Reports, exports and replicas that AWS services put into buckets as CSV."""

from __future__ import annotations

from tests.zoo.families.text import EITHER, JOINED, LEFT, kind
from tests.zoo.readers import document, table

_AWS = "https://docs.aws.amazon.com/"
_INVENTORY_PAGE = "Amazon S3 Inventory list"
_INVENTORY_URL = _AWS + "AmazonS3/latest/userguide/storage-inventory.html"
_DMS_PAGE = "Using Amazon S3 as a target for AWS DMS"
_DMS_URL = _AWS + "dms/latest/userguide/CHAP_Target.S3.html"
_rows = table(header=False)


@kind("S3 Inventory", page=_INVENTORY_PAGE, url=_INVENTORY_URL, reader=_rows, verdict=EITHER,
      ending=".csv")  # fmt: skip
def _inventory(chance):
    return chance.rows(
        lambda: (
            f'"my-bucket","{chance.path()[1:]}","{chance.randrange(9999)}",'
            f'"{chance.at("%Y-%m-%dT%H:%M:%S.000Z")}","{chance.hexes(32)}","STANDARD","false",""'
        )
    )


@kind("S3 Inventory of two columns", page=_INVENTORY_PAGE, url=_INVENTORY_URL, reader=_rows,
      verdict=EITHER, ending=".csv")  # fmt: skip
def _inventory_two(chance):
    return '"my-bucket","logs/"\n' + chance.rows(lambda: f'"my-bucket","{chance.path()[1:]}"')


@kind("S3 Inventory of two columns, declared headerless", page=_INVENTORY_PAGE, url=_INVENTORY_URL,
      reader=_rows, verdict=JOINED, ending=".csv", given={"csv_header": "absent"})  # fmt: skip
def _inventory_declared(chance):
    return '"my-bucket","logs/"\n' + chance.rows(lambda: f'"my-bucket","{chance.path()[1:]}"')


@kind(
    "S3 Batch Operations manifest",
    page="Specifying a manifest (S3 Batch Operations)",
    url=_AWS + "AmazonS3/latest/userguide/specify-batchjob-manifest.html",
    reader=_rows,
    verdict=EITHER,
    ending=".csv",
)
def _batch_manifest(chance):
    return chance.rows(lambda: f"Examplebucket,object{chance.word()}")


@kind(
    "S3 Batch Operations report",
    page="Tracking job status and completion reports",
    url=_AWS + "AmazonS3/latest/userguide/batch-ops-job-status.html",
    reader=_rows,
    verdict=EITHER,
    ending=".csv",
)
def _batch_report(chance):
    return chance.rows(lambda: f"bucket,{chance.path()[1:]},,succeeded,200,,Successful")


@kind(
    "S3 Storage Lens",
    page="Amazon S3 Storage Lens metrics export",
    url=_AWS + "AmazonS3/latest/userguide/storage_lens_view_metrics_export.html",
    reader=table(),
    verdict=JOINED,
    ending=".csv",
)
def _storage_lens(chance):
    header = (
        "version_number,configuration_id,report_date,aws_account_number,aws_region,storage_class,"
        "record_type,record_value,bucket_name,metric_name,metric_value\n"
    )
    return header + chance.rows(
        lambda: (
            f"V_1,default,{chance.at('%Y-%m-%d')},123456789012,us-east-1,STANDARD,BUCKET,,"
            f"{chance.word()},StorageBytes,{chance.randrange(99999)}"
        )
    )


@kind(
    "Cost and Usage Report",
    page="Data dictionary (AWS Cost and Usage Reports)",
    url=_AWS + "cur/latest/userguide/data-dictionary.html",
    reader=table(),
    verdict=JOINED,
    ending=".csv",
)
def _cost(chance):
    header = (
        "identity/LineItemId,identity/TimeInterval,bill/PayerAccountId,lineItem/UsageStartDate,"
        "lineItem/ProductCode,lineItem/UsageAmount,lineItem/UnblendedCost\n"
    )
    return header + chance.rows(
        lambda: (
            f"{chance.hexes(26)},{chance.iso()}/{chance.iso()},123456789012,{chance.iso()},"
            f"AmazonS3,{chance.randrange(999)},0.0{chance.randrange(999)}"
        )
    )


@kind("DMS full load", page=_DMS_PAGE, url=_DMS_URL, reader=_rows, verdict=EITHER,
      ending="LOAD00000001.csv")  # fmt: skip
def _dms_load(chance):
    return chance.rows(
        lambda: f"{chance.randrange(999)},{chance.word()},{chance.at('%Y-%m-%d %H:%M:%S')},Seattle"
    )


@kind("DMS change data", page=_DMS_PAGE, url=_DMS_URL, reader=_rows, verdict=EITHER,
      ending="-20260102-000512345.csv")  # fmt: skip
def _dms_changes(chance):
    return "I,alice,berlin\n" + chance.rows(
        lambda: f"{chance.choice('IUD')},{chance.word()},{chance.word()}"
    )


@kind("DMS with column names", page=_DMS_PAGE, url=_DMS_URL, reader=table(), verdict=JOINED,
      ending="LOAD00000001.csv")  # fmt: skip
def _dms_named(chance):
    return "Op,id,name,updated_at\n" + chance.rows(
        lambda: f"I,{chance.randrange(999)},{chance.word()},{chance.at('%Y-%m-%d %H:%M:%S')}"
    )


@kind(
    "Athena result",
    page="Work with query results and recent queries (Athena)",
    url=_AWS + "athena/latest/ug/querying.html",
    reader=table(),
    verdict=JOINED,
    ending=".csv",
)
def _athena(chance):
    return '"request_ip","count","last_seen"\n' + chance.rows(
        lambda: f'"{chance.ip()}","{chance.randrange(99)}","{chance.at("%Y-%m-%d %H:%M:%S.%3")}"'
    )


@kind(
    "Redshift UNLOAD, pipes",
    page="UNLOAD (Amazon Redshift)",
    url=_AWS + "redshift/latest/dg/r_UNLOAD.html",
    reader=table("|", header=False, quotes=False),
    verdict=EITHER,
    ending="0000_part_00",
)
def _unload(chance):
    return chance.rows(lambda: f"{chance.randrange(99)}|{chance.word()}|{chance.words()}|0.5")


@kind(
    "Credential report",
    page="Generate credential reports for your AWS account",
    url=_AWS + "IAM/latest/UserGuide/id_credentials_getting-report.html",
    reader=table(),
    verdict=EITHER,
    ending=".csv",
)
def _credentials(chance):
    return "user,arn,user_creation_time,password_enabled,mfa_active\n" + chance.rows(
        lambda: (
            f"{chance.word()},arn:aws:iam::123456789012:user/{chance.word()},{chance.iso()},"
            f"{chance.choice(('true', 'false', 'not_supported'))},false"
        )
    )


@kind(
    "RDS for MySQL audit log",
    page="MariaDB Audit Plugin support for MySQL (Amazon RDS)",
    url=_AWS + "AmazonRDS/latest/UserGuide/Appendix.MySQL.Options.AuditPlugin.html",
    reader=_rows,
    verdict=EITHER,
    ending="server_audit.csv",
)
def _audit(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y%m%d %H:%M:%S')},ip-10-0-0-1,{chance.word()},{chance.ip()},"
            f"{chance.randrange(99)},{chance.randrange(999)},QUERY,db,'SELECT 1, 2',0"
        )
    )


@kind(
    "Trusted Advisor export",
    page="Viewing organizational reports (Trusted Advisor): a title above the table",
    url=_AWS + "awssupport/latest/user/organizational-view.html",
    reader=document,
    verdict=LEFT,
    ending=".csv",
)
def _advisor(chance):
    return f"AWS Trusted Advisor Report\n\nRegion,Status,Resource\nus-east-1,ok,{chance.host()}\n"
