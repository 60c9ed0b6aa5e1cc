"""What AWS services put into buckets as JSON."""

from __future__ import annotations

import json

from tests.zoo.kinds import Kind, js, rows, spaced
from tests.zoo.readers import (
    json_document,
    json_lines,
    json_stream,
    listed_document,
    records_document,
)

_AWS = "https://docs.aws.amazon.com/"


def _trail_event(c) -> dict[str, object]:
    return {
        "eventVersion": "1.08",
        "userIdentity": {"type": "IAMUser", "userName": c.word()},
        "eventTime": c.iso(),
        "eventSource": f"{c.word()}.amazonaws.com",
        "eventName": "GetObject",
        "sourceIPAddress": c.ip(),
        "requestParameters": {"key": 'a,"]}{[', "n": c.randrange(99)},
        "eventID": c.id(),
    }


_TRAIL_URL = _AWS + "awscloudtrail/latest/userguide/cloudtrail-log-file-examples.html"


def _s3_events(c):
    record = {"eventVersion": "2.1", "s3": {"object": {"key": c.path(), "size": 1}}}
    return js(Records=[record])


_CONFIG_URL = _AWS + "config/latest/developerguide/view-manage-resource.html"


def _config_history(c):
    items = [{"resourceId": f"vol-{c.hexes(8)}", "tags": {}} for _ in range(3)]
    return js(fileVersion="1.0", configurationItems=items)


def _subscription_pretty(c):
    events = [{"id": c.hexes(8), "message": c.words()} for _ in range(2)]
    document = {
        "messageType": "DATA_MESSAGE",
        "logGroup": "/aws/lambda/a",
        "logStream": c.pick(("one", "two")),
        "subscriptionFilters": ["all"],
        "logEvents": events,
    }
    return json.dumps(document, indent=2)


def _findings(c):
    found = [{"Id": c.id(), "Title": c.words(), "Resources": []} for _ in range(2)]
    return json.dumps({"Findings": found}, indent=4)


def _get_more_records(c):
    records = [{"Data": c.hexes(8), "SequenceNumber": str(n)} for n in range(3)]
    return js(Records=records, NextShardIterator=c.id(), MillisBehindLatest=0)


def _event(c) -> str:
    return spaced(
        version="0",
        id=c.id(),
        source=f"aws.{c.word()}",
        time=c.iso(),
        region="us-east-1",
        detail={"state": c.word(), "text": '}{ \\ "}{'},
    )


_FIREHOSE_URL = _AWS + "firehose/latest/dev/basic-deliver.html"


def _firehose_long(c):
    first = js(blob="ab" * (40_000 if c.number % 2 else 30_000), id=1)
    return first + "".join(js(id=n) for n in range(3))


# fmt: off
KINDS = (
    Kind("WAF", "_waflogs_us-east-1_acl_20260102T0005Z_3b0d.log", json_lines,
         _AWS + "waf/latest/developerguide/logging-fields.html", rows(lambda c: js(
         timestamp=c.unix() * 1000, formatVersion=1,
         webaclId="arn:aws:wafv2:us-east-1:123456789012:regional/webacl/acl/1",
         action=c.choice(("ALLOW", "BLOCK")), ruleGroupList=[], httpRequest={"clientIp": c.ip(),
         "headers": [{"name": "User-Agent", "value": 'a"}{"b'}], "uri": c.path(), "args": "q={x}"},
         ja3Fingerprint=c.hexes(32)))),
    Kind("CloudTrail", "_CloudTrail_us-east-1_20260102T0005Z_AbCdEf012345.json", records_document,
         _TRAIL_URL, lambda c: js(Records=[_trail_event(c) for _ in range(c.randint(1, 6))])),
    Kind("CloudTrail Insights", "_CloudTrail-Insight_us-east-1_20260102T0005Z_AbCd.json", records_document,
         _AWS + "awscloudtrail/latest/userguide/cloudtrail-insights-log-file-examples.html",
         lambda c: js(Records=[{"eventID": c.id(), "insightDetails": {"state": "Start"}}])),
    Kind("CloudTrail digest", "_CloudTrail-Digest_us-east-1_trail_us-east-1_20260102T0005Z.json", json_document,
         _AWS
    + "awscloudtrail/latest/userguide/cloudtrail-log-file-validation-digest-file-structure.html",
         lambda c: js(awsAccountId="123456789012", digestEndTime=c.iso(), logFiles=[]),
         expected="cloudtrail_digest"),
    Kind("S3 event notifications", ".json", records_document,
         _AWS + "AmazonS3/latest/userguide/notification-content-structure.html", _s3_events),
    Kind("Route 53 Resolver queries", "_vpcdnsquerylogs_vpc-0123_20260102T0005Z_3b0d.log", json_lines,
         _AWS + "Route53/latest/DeveloperGuide/resolver-query-logs-format.html", rows(lambda c: js(
         version="1.100000", query_timestamp=c.iso(), query_name=f"{c.word()}.example.com.",
         query_type="A", rcode="NOERROR", answers=[{"Rdata": c.ip(), "Type": "A", "Class": "IN"}],
         srcaddr=c.ip()))),
    Kind("GuardDuty findings", ".jsonl", json_lines,
         _AWS + "guardduty/latest/ug/guardduty_exportfindings.html", lambda c: c.rows(
         lambda: js(schemaVersion="2.0", id=c.hexes(32), type="Recon:EC2/Portscan",
                 severity=2, updatedAt=c.iso()), 1, 5)),
    Kind("Config history", "_Config_us-east-1_ConfigHistory_AWS::EC2::Volume_20260102T0005Z.json", json_lines,
         _CONFIG_URL, _config_history),
    Kind("CloudWatch Logs subscription, pretty-printed", ".json", listed_document("logEvents"),
         _AWS + "AmazonCloudWatch/latest/logs/SubscriptionFilters.html", _subscription_pretty),
    Kind("Security Hub findings", ".json", listed_document("Findings"),
         _AWS + "securityhub/1.0/APIReference/API_GetFindings.html", _findings),
    Kind("Kinesis GetRecords answers to be continued", ".json", records_document,
         _AWS + "kinesis/latest/APIReference/API_GetRecords.html", _get_more_records,
         expected="malformed_document"),
    Kind("EventBridge to Firehose", "", json_stream,
         _AWS + "eventbridge/latest/userguide/eb-targets.html",
         lambda c: "".join(_event(c) for _ in range(c.randint(2, 9)))),
    Kind("EventBridge archive, one event an object", ".json", json_lines,
         _AWS + "eventbridge/latest/ref/overview-event-structure.html", _event),
    Kind("Firehose", "-2026-01-02-00-05-3b0d", json_stream, _FIREHOSE_URL, lambda c: "".join(
         js(id=c.randrange(999), text=c.words(), nested={"a": {}, "b": "}{"})
         for _ in range(c.randint(2, 9)))),
    Kind("Firehose with a long first record", "-2026-01-02-00-05-3b0d", json_stream, _FIREHOSE_URL,
         _firehose_long),
    Kind("Firehose with newlines", "-2026-01-02-00-05-3b0d", json_lines, _FIREHOSE_URL,
         rows(lambda c: js(id=c.randrange(999), text=c.words()))),
    Kind("Firehose processing failures", "-2026-01-02-00-05-3b0d", json_lines,
         _AWS + "firehose/latest/dev/data-transformation-failure-handling.html",
         rows(lambda c: js(attemptsMade=4, arrivalTimestamp=c.unix(), errorCode="Lambda.FunctionError",
            errorMessage=c.words(), rawData=c.hexes(20)))),
    Kind("CloudWatch Logs subscription", "-2026-01-02-00-05-3b0d", json_stream,
         _AWS + "AmazonCloudWatch/latest/logs/SubscriptionFilters.html", lambda c: "".join(
         js(messageType="DATA_MESSAGE", owner="123456789012", logGroup="/aws/lambda/f",
         logEvents=[{"id": str(n), "timestamp": 1, "message": "a\n\"b"} for n in range(2)])
         for _ in range(c.randint(2, 5)))),
    Kind("Network Firewall alerts", "_network-firewall_alert_us-east-1_fw_202601020005_3b0d.log", json_lines,
         _AWS + "network-firewall/latest/developerguide/firewall-logging-contents.html",
         rows(lambda c: spaced(firewall_name="fw", event_timestamp=str(c.unix()),
                event={"src_ip": c.ip(), "event_type": "alert"}))),
    Kind("DynamoDB export, JSON", ".json", json_lines,
         _AWS + "amazondynamodb/latest/developerguide/S3DataExport.Output.html",
         rows(lambda c: js(Item={"pk": {"S": c.word()}, "n": {"N": str(c.randrange(99))}}))),
    Kind("DynamoDB export manifest", "-manifest-files.json", json_lines,
         _AWS + "amazondynamodb/latest/developerguide/S3DataExport.Output.html",
         rows(lambda c: js(itemCount=c.randrange(99), dataFileS3Key=f"d/{c.hexes(20)}.json.gz"))),
    Kind("Connect contact records", "", json_stream,
         _AWS + "connect/latest/adminguide/ctr-data-model.html", lambda c: "".join(
         js(AWSAccountId="1", ContactId=c.id(), Attributes={}, Queue=None) for _ in range(4))),
    Kind("IoT rule, one message an object", ".json", json_lines,
         _AWS + "iot/latest/developerguide/s3-rule-action.html",
         lambda c: js(device=c.host(), temperature=c.randrange(-20, 40), ok=True)),
    Kind("Bedrock invocation log", ".json", json_lines,
         _AWS + "bedrock/latest/userguide/model-invocation-logging.html", lambda c: c.rows(
         lambda: js(schemaType="ModelInvocationLog", timestamp=c.iso(),
                 input={"inputBodyJson": {"messages": [{"text": c.words()}]}}), 1, 4)),
    Kind("SageMaker augmented manifest", ".manifest", json_lines,
         _AWS + "sagemaker/latest/dg/augmented-manifest.html",
         rows(lambda c: js(**{"source-ref": f"s3://b{c.path()}.jpg", "label": c.randrange(9)}))),
    Kind("Transcribe result", ".json", json_lines, _AWS + "transcribe/latest/dg/how-input.html",
         lambda c: js(jobName=c.word(), results={"transcripts": [{"transcript": c.words()}]})),
    Kind("Verified Access, OCSF", ".log", json_lines,
         _AWS + "verified-access/latest/ug/access-logs-examples.html",
         rows(lambda c: js(activity="Access Grant", class_uid="208001", time=c.unix(),
            device={"ip": c.ip()}, http_request={"url": {"path": c.path()}}))),
    Kind("SES events by Firehose", "-2026-01-02-00-05-3b0d", json_lines,
         _AWS + "ses/latest/dg/event-publishing-retrieving-firehose-examples.html",
         rows(lambda c: js(eventType="Delivery", mail={"messageId": c.hexes(20), "headers": []}))),
)
# fmt: on
