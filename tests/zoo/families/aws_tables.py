"""Reports, exports and replicas that AWS services put into buckets as CSV."""

from __future__ import annotations

from tests.zoo.kinds import HEADED, ROWS, Kind, rows
from tests.zoo.readers import document, table

_AWS = "https://docs.aws.amazon.com/"
_INVENTORY_URL = _AWS + "AmazonS3/latest/userguide/storage-inventory.html"
_DMS_URL = _AWS + "dms/latest/userguide/CHAP_Target.S3.html"
_rows = table(header=False)


def _storage_lens(c):
    header = (
        "version_number,configuration_id,report_date,aws_account_number,aws_region,storage_class,"
        "record_type,record_value,bucket_name,metric_name,metric_value\n"
    )
    return header + c.rows(
        lambda: (
            f"V_1,default,{c.at('%Y-%m-%d')},123456789012,us-east-1,STANDARD,BUCKET,,"
            f"{c.word()},StorageBytes,{c.randrange(99999)}"
        )
    )


def _cost(c):
    header = (
        "identity/LineItemId,identity/TimeInterval,bill/PayerAccountId,lineItem/UsageStartDate,"
        "lineItem/ProductCode,lineItem/UsageAmount,lineItem/UnblendedCost\n"
    )
    return header + c.rows(
        lambda: (
            f"{c.hexes(26)},{c.iso()}/{c.iso()},123456789012,{c.iso()},"
            f"AmazonS3,{c.randrange(999)},0.0{c.randrange(999)}"
        )
    )


# fmt: off
KINDS = (
    Kind("S3 Inventory", ".csv", _rows, _INVENTORY_URL,
         rows(lambda c: f'"my-bucket","{c.path()[1:]}","{c.randrange(9999)}",'
         f'"{c.at("%Y-%m-%dT%H:%M:%S.000Z")}","{c.hexes(32)}","STANDARD","false",""'),
         declared=ROWS),
    Kind("S3 Inventory of two columns", ".csv", _rows, _INVENTORY_URL,
         lambda c: '"my-bucket","logs/"\n' + c.rows(lambda: f'"my-bucket","{c.path()[1:]}"'),
         declared=ROWS),
    Kind("S3 Batch Operations manifest", ".csv", _rows,
         _AWS + "AmazonS3/latest/userguide/specify-batchjob-manifest.html",
         rows(lambda c: f"Examplebucket,object{c.word()}"), declared=ROWS),
    Kind("S3 Batch Operations report", ".csv", _rows,
         _AWS + "AmazonS3/latest/userguide/batch-ops-job-status.html",
         rows(lambda c: f"bucket,{c.path()[1:]},,succeeded,200,,Successful"), declared=ROWS),
    Kind("S3 Storage Lens", ".csv", table(),
         _AWS + "AmazonS3/latest/userguide/storage_lens_view_metrics_export.html", _storage_lens,
         declared=HEADED),
    Kind("Cost and Usage Report", ".csv", table(),
         _AWS + "cur/latest/userguide/data-dictionary.html", _cost, declared=HEADED),
    Kind("DMS full load", "LOAD00000001.csv", _rows, _DMS_URL,
         rows(lambda c: f"{c.randrange(999)},{c.word()},{c.at('%Y-%m-%d %H:%M:%S')},Seattle"),
         declared=ROWS),
    Kind("DMS change data", "-20260102-000512345.csv", _rows, _DMS_URL,
         lambda c: ("I,alice,berlin\n" + c.rows(lambda: f"{c.choice('IUD')},{c.word()},{c.word()}"
         )), declared=ROWS),
    Kind("DMS with column names", "LOAD00000001.csv", table(), _DMS_URL,
         lambda c: ("Op,id,name,updated_at\n" + c.rows(
         lambda: f"I,{c.randrange(999)},{c.word()},{c.at('%Y-%m-%d %H:%M:%S')}")), declared=HEADED),
    Kind("Athena result", ".csv", table(), _AWS + "athena/latest/ug/querying.html",
         lambda c: ('"request_ip","count","last_seen"\n' + c.rows(
         lambda: f'"{c.ip()}","{c.randrange(99)}","{c.at("%Y-%m-%d %H:%M:%S.%3")}"')),
         declared=HEADED),
    Kind("Redshift UNLOAD, pipes", "0000_part_00", table("|", header=False, quotes=False),
         _AWS + "redshift/latest/dg/r_UNLOAD.html",
         rows(lambda c: f"{c.randrange(99)}|{c.word()}|{c.words()}|0.5"),
         declared={"format": "csv", "header": False, "delimiter": "|", "quote": "none"}),
    Kind("Credential report", ".csv", table(),
         _AWS + "IAM/latest/UserGuide/id_credentials_getting-report.html",
         lambda c: ("user,arn,user_creation_time,password_enabled,mfa_active\n" + c.rows(lambda: (
          f"{c.word()},arn:aws:iam::123456789012:user/{c.word()},{c.iso()},"
          f"{c.choice(('true', 'false', 'not_supported'))},false"))), declared=HEADED),
    Kind("RDS for MySQL audit log", "server_audit.csv", _rows,
         _AWS + "AmazonRDS/latest/UserGuide/Appendix.MySQL.Options.AuditPlugin.html",
         rows(lambda c: f"{c.at('%Y%m%d %H:%M:%S')},ip-10-0-0-1,{c.word()},{c.ip()},"
         f"{c.randrange(99)},{c.randrange(999)},QUERY,db,'SELECT 1, 2',0"), declared=ROWS),
    Kind("Trusted Advisor export", ".csv", document,
         _AWS + "awssupport/latest/user/organizational-view.html",
         lambda c: f"AWS Trusted Advisor Report\n\nRegion,Status,Resource\nus-east-1,ok,{c.host()}\n",
         declared=HEADED, expected="malformed_document"),
)
# fmt: on
