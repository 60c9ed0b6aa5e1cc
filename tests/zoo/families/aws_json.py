"""What AWS services put into buckets as JSON."""

from __future__ import annotations

import json

from tests.zoo.families.text import EITHER, JOINED, LEFT, js, kind, spaced
from tests.zoo.readers import (
    json_document,
    json_lines,
    json_stream,
    lines,
    listed_document,
    records_document,
)

_AWS = "https://docs.aws.amazon.com/"


@kind(
    "WAF",
    page="Log fields for web ACL traffic",
    url=_AWS + "waf/latest/developerguide/logging-fields.html",
    reader=json_lines,
    verdict=JOINED,
    ending="_waflogs_us-east-1_acl_20260102T0005Z_3b0d.log",
)
def _waf(chance):
    return chance.rows(
        lambda: js(
            timestamp=chance.unix() * 1000,
            formatVersion=1,
            webaclId="arn:aws:wafv2:us-east-1:123456789012:regional/webacl/acl/1",
            action=chance.choice(("ALLOW", "BLOCK")),
            ruleGroupList=[],
            httpRequest={
                "clientIp": chance.ip(),
                "headers": [{"name": "User-Agent", "value": 'a"}{"b'}],
                "uri": chance.path(),
                "args": "q={x}",
            },
            ja3Fingerprint=chance.hexes(32),
        )
    )


def _trail_event(chance) -> dict[str, object]:
    return {
        "eventVersion": "1.08",
        "userIdentity": {"type": "IAMUser", "userName": chance.word()},
        "eventTime": chance.iso(),
        "eventSource": f"{chance.word()}.amazonaws.com",
        "eventName": "GetObject",
        "sourceIPAddress": chance.ip(),
        "requestParameters": {"key": 'a,"]}{[', "n": chance.randrange(99)},
        "eventID": chance.id(),
    }


_TRAIL_PAGE = "CloudTrail log file examples"
_TRAIL_URL = _AWS + "awscloudtrail/latest/userguide/cloudtrail-log-file-examples.html"


@kind("CloudTrail", page=_TRAIL_PAGE, url=_TRAIL_URL, reader=records_document, verdict=JOINED,
      ending="_CloudTrail_us-east-1_20260102T0005Z_AbCdEf012345.json")  # fmt: skip
def _trail(chance):
    return js(Records=[_trail_event(chance) for _ in range(chance.randint(1, 6))])


@kind("CloudTrail under other names", page=_TRAIL_PAGE, url=_TRAIL_URL, reader=records_document,
      verdict=JOINED, ending=".json")  # fmt: skip
def _trail_renamed(chance):
    document = {"Records": [_trail_event(chance) for _ in range(chance.randint(1, 6))]}
    return json.dumps(document, indent=1)


@kind(
    "CloudTrail Insights",
    page="CloudTrail Insights event examples",
    url=_AWS + "awscloudtrail/latest/userguide/cloudtrail-insights-log-file-examples.html",
    reader=records_document,
    verdict=JOINED,
    ending="_CloudTrail-Insight_us-east-1_20260102T0005Z_AbCd.json",
)
def _insight(chance):
    return js(Records=[{"eventID": chance.id(), "insightDetails": {"state": "Start"}}])


@kind(
    "CloudTrail digest",
    page="CloudTrail digest file structure",
    url=_AWS
    + "awscloudtrail/latest/userguide/cloudtrail-log-file-validation-digest-file-structure.html",
    reader=json_document,
    verdict=EITHER,
    ending="_CloudTrail-Digest_us-east-1_trail_us-east-1_20260102T0005Z.json",
)
def _digest(chance):
    return js(awsAccountId="123456789012", digestEndTime=chance.iso(), logFiles=[])


@kind(
    "Kinesis GetRecords answer",
    page="GetRecords (Kinesis Data Streams API)",
    url=_AWS + "kinesis/latest/APIReference/API_GetRecords.html",
    reader=listed_document("Records"),
    verdict=EITHER,
    ending=".json",
)
def _get_records(chance):
    records = [{"Data": chance.hexes(8), "SequenceNumber": str(n)} for n in range(3)]
    return js(Records=records, MillisBehindLatest=chance.randrange(9))


@kind(
    "S3 event notifications",
    page="Event message structure (Amazon S3)",
    url=_AWS + "AmazonS3/latest/userguide/notification-content-structure.html",
    reader=records_document,
    verdict=JOINED,
    ending=".json",
)
def _s3_events(chance):
    record = {"eventVersion": "2.1", "s3": {"object": {"key": chance.path(), "size": 1}}}
    return js(Records=[record])


@kind(
    "Route 53 Resolver queries",
    page="Values that appear in Resolver query logs",
    url=_AWS + "Route53/latest/DeveloperGuide/resolver-query-logs-format.html",
    reader=json_lines,
    verdict=JOINED,
    ending="_vpcdnsquerylogs_vpc-0123_20260102T0005Z_3b0d.log",
)
def _resolver(chance):
    return chance.rows(
        lambda: js(
            version="1.100000",
            query_timestamp=chance.iso(),
            query_name=f"{chance.word()}.example.com.",
            query_type="A",
            rcode="NOERROR",
            answers=[{"Rdata": chance.ip(), "Type": "A", "Class": "IN"}],
            srcaddr=chance.ip(),
        )
    )


@kind(
    "GuardDuty findings",
    page="Exporting GuardDuty findings to Amazon S3",
    url=_AWS + "guardduty/latest/ug/guardduty_exportfindings.html",
    reader=json_lines,
    verdict=JOINED,
    ending=".jsonl",
)
def _guard_duty(chance):
    return chance.rows(
        lambda: js(schemaVersion="2.0", id=chance.hexes(32), type="Recon:EC2/Portscan",
                   severity=2, updatedAt=chance.iso()), 1, 5
    )  # fmt: skip


_CONFIG_PAGE = "Delivering configuration items to Amazon S3"
_CONFIG_URL = _AWS + "config/latest/developerguide/view-manage-resource.html"


@kind("Config history", page=_CONFIG_PAGE, url=_CONFIG_URL, reader=json_lines, verdict=EITHER,
      ending="_Config_us-east-1_ConfigHistory_AWS::EC2::Volume_20260102T0005Z.json")  # fmt: skip
def _config_history(chance):
    items = [{"resourceId": f"vol-{chance.hexes(8)}", "tags": {}} for _ in range(3)]
    return js(fileVersion="1.0", configurationItems=items)


@kind("Config history, pretty-printed", page=_CONFIG_PAGE, url=_CONFIG_URL,
      reader=listed_document("configurationItems"), verdict=JOINED,
      ending="_Config_us-east-1_ConfigHistory_AWS__EC2__Volume.json")  # fmt: skip
def _config_pretty(chance):
    items = [{"resourceId": f"vol-{chance.hexes(8)}", "tags": {}} for _ in range(3)]
    return json.dumps({"fileVersion": "1.0", "configurationItems": items}, indent=2)


@kind("CloudWatch Logs subscription, pretty-printed",
      page="Real-time processing of log data with subscriptions",
      url=_AWS + "AmazonCloudWatch/latest/logs/SubscriptionFilters.html",
      reader=listed_document("logEvents"), verdict=EITHER, ending=".json")  # fmt: skip
def _subscription_pretty(chance):
    events = [{"id": chance.hexes(8), "message": chance.words()} for _ in range(2)]
    document = {
        "messageType": "DATA_MESSAGE",
        "logGroup": "/aws/lambda/a",
        "logStream": chance.pick(("one", "two")),
        "subscriptionFilters": ["all"],
        "logEvents": events,
    }
    return json.dumps(document, indent=2)


@kind("Security Hub findings", page="GetFindings (AWS Security Hub API)",
      url=_AWS + "securityhub/1.0/APIReference/API_GetFindings.html",
      reader=listed_document("Findings"), verdict=JOINED, ending=".json")  # fmt: skip
def _findings(chance):
    found = [{"Id": chance.id(), "Title": chance.words(), "Resources": []} for _ in range(2)]
    return json.dumps({"Findings": found}, indent=4)


@kind("Kinesis GetRecords answers, all read",
      page="GetRecords (Kinesis Data Streams API)",
      url=_AWS + "kinesis/latest/APIReference/API_GetRecords.html",
      reader=listed_document("Records"), verdict=JOINED, ending=".json")  # fmt: skip
def _get_all_records(chance):
    records = [{"Data": chance.hexes(8), "SequenceNumber": str(n)} for n in range(3)]
    return js(Records=records, MillisBehindLatest=0)


@kind("Kinesis GetRecords answers to be continued",
      page="GetRecords (Kinesis Data Streams API)",
      url=_AWS + "kinesis/latest/APIReference/API_GetRecords.html",
      reader=records_document, verdict=LEFT, ending=".json")  # fmt: skip
def _get_more_records(chance):
    records = [{"Data": chance.hexes(8), "SequenceNumber": str(n)} for n in range(3)]
    return js(Records=records, NextShardIterator=chance.id(), MillisBehindLatest=0)


@kind("Config snapshot", page=_CONFIG_PAGE, url=_CONFIG_URL, reader=json_document, verdict=LEFT,
      ending="_Config_us-east-1_ConfigSnapshot_20260102T0005Z.json")  # fmt: skip
def _config_snapshot(chance):
    items = [{"resourceId": f"vol-{chance.hexes(8)}", "tags": {}} for _ in range(3)]
    document = {"fileVersion": "1.0", "configSnapshotId": chance.id(), "configurationItems": items}
    return json.dumps(document, indent=2)


def _event(chance) -> str:
    return spaced(
        version="0",
        id=chance.id(),
        source=f"aws.{chance.word()}",
        time=chance.iso(),
        region="us-east-1",
        detail={"state": chance.word(), "text": '}{ \\ "}{'},
    )


@kind(
    "EventBridge to Firehose",
    page="Amazon EventBridge event patterns and targets",
    url=_AWS + "eventbridge/latest/userguide/eb-targets.html",
    reader=json_stream,
    verdict=JOINED,
    ending="",
)
def _event_bridge(chance):
    return "".join(_event(chance) for _ in range(chance.randint(2, 9)))


@kind(
    "EventBridge archive, one event an object",
    page="Event structure (Amazon EventBridge)",
    url=_AWS + "eventbridge/latest/ref/overview-event-structure.html",
    reader=json_lines,
    verdict=JOINED,
    ending=".json",
)
def _one_event(chance):
    return _event(chance)


_FIREHOSE_PAGE = "Data delivery format (Amazon Data Firehose)"
_FIREHOSE_URL = _AWS + "firehose/latest/dev/basic-deliver.html"


@kind("Firehose", page=_FIREHOSE_PAGE, url=_FIREHOSE_URL, reader=json_stream, verdict=JOINED,
      ending="-2026-01-02-00-05-3b0d")  # fmt: skip
def _firehose(chance):
    return "".join(
        js(id=chance.randrange(999), text=chance.words(), nested={"a": {}, "b": "}{"})
        for _ in range(chance.randint(2, 9))
    )


@kind("Firehose with a long first record", page=_FIREHOSE_PAGE, url=_FIREHOSE_URL,
      reader=json_stream, verdict=EITHER, ending="-2026-01-02-00-05-3b0d")  # fmt: skip
def _firehose_long(chance):
    first = js(blob="ab" * (40_000 if chance.number % 2 else 30_000), id=1)
    return first + "".join(js(id=n) for n in range(3))


@kind("Firehose with newlines", page=_FIREHOSE_PAGE, url=_FIREHOSE_URL, reader=json_lines,
      verdict=JOINED, ending="-2026-01-02-00-05-3b0d")  # fmt: skip
def _firehose_newlines(chance):
    return chance.rows(lambda: js(id=chance.randrange(999), text=chance.words()))


@kind("Firehose, one record an object", page=_FIREHOSE_PAGE, url=_FIREHOSE_URL, reader=json_stream,
      verdict=JOINED, ending="-2026-01-02-00-05-3b0d")  # fmt: skip
def _firehose_one(chance):
    return js(id=chance.randrange(999), text=chance.words())


@kind(
    "Firehose processing failures",
    page="Handle failed data transformation (Amazon Data Firehose)",
    url=_AWS + "firehose/latest/dev/data-transformation-failure-handling.html",
    reader=json_lines,
    verdict=JOINED,
    ending="-2026-01-02-00-05-3b0d",
)
def _firehose_failed(chance):
    return chance.rows(
        lambda: js(attemptsMade=4, arrivalTimestamp=chance.unix(), errorCode="Lambda.FunctionError",
                   errorMessage=chance.words(), rawData=chance.hexes(20))
    )  # fmt: skip


@kind(
    "CloudWatch Logs subscription",
    page="Real-time processing of log data with subscriptions",
    url=_AWS + "AmazonCloudWatch/latest/logs/SubscriptionFilters.html",
    reader=json_stream,
    verdict=JOINED,
    ending="-2026-01-02-00-05-3b0d",
)
def _subscription(chance):
    return "".join(
        js(messageType="DATA_MESSAGE", owner="123456789012", logGroup="/aws/lambda/f",
           logEvents=[{"id": str(n), "timestamp": 1, "message": "a\n\"b"} for n in range(2)])
        for _ in range(chance.randint(2, 5))
    )  # fmt: skip


@kind(
    "Network Firewall alerts",
    page="Contents of an AWS Network Firewall log",
    url=_AWS + "network-firewall/latest/developerguide/firewall-logging-contents.html",
    reader=json_lines,
    verdict=JOINED,
    ending="_network-firewall_alert_us-east-1_fw_202601020005_3b0d.log",
)
def _firewall(chance):
    return chance.rows(
        lambda: spaced(firewall_name="fw", event_timestamp=str(chance.unix()),
                       event={"src_ip": chance.ip(), "event_type": "alert"})
    )  # fmt: skip


@kind(
    "Macie results",
    page="Storing and retaining sensitive data discovery results",
    url=_AWS + "macie/latest/user/discovery-results-repository-s3.html",
    reader=json_lines,
    verdict=JOINED,
    ending=".jsonl",
)
def _macie(chance):
    return chance.rows(
        lambda: js(schemaVersion="1.0", id=chance.id(), category="CLASSIFICATION"), 1, 4
    )


@kind(
    "DynamoDB export, JSON",
    page="DynamoDB table export output format",
    url=_AWS + "amazondynamodb/latest/developerguide/S3DataExport.Output.html",
    reader=json_lines,
    verdict=JOINED,
    ending=".json",
)
def _dynamo(chance):
    return chance.rows(
        lambda: js(Item={"pk": {"S": chance.word()}, "n": {"N": str(chance.randrange(99))}})
    )


@kind(
    "DynamoDB export, Ion text",
    page="DynamoDB table export output format",
    url=_AWS + "amazondynamodb/latest/developerguide/S3DataExport.Output.html",
    reader=lines,
    verdict=EITHER,
    ending=".ion",
)
def _ion(chance):
    return chance.rows(
        lambda: '$ion_1_0 {Item:{pk:"' + chance.word() + f'",n:{chance.randrange(99)}.}}}}', 2, 5
    )


@kind(
    "DynamoDB export manifest",
    page="DynamoDB table export output format",
    url=_AWS + "amazondynamodb/latest/developerguide/S3DataExport.Output.html",
    reader=json_lines,
    verdict=JOINED,
    ending="-manifest-files.json",
)
def _dynamo_manifest(chance):
    return chance.rows(
        lambda: js(itemCount=chance.randrange(99), dataFileS3Key=f"d/{chance.hexes(20)}.json.gz")
    )


@kind(
    "Connect contact records",
    page="Data model for Amazon Connect contact records",
    url=_AWS + "connect/latest/adminguide/ctr-data-model.html",
    reader=json_stream,
    verdict=JOINED,
    ending="",
)
def _connect(chance):
    return "".join(
        js(AWSAccountId="1", ContactId=chance.id(), Attributes={}, Queue=None) for _ in range(4)
    )


@kind(
    "IoT rule, one message an object",
    page="S3 action of AWS IoT rules",
    url=_AWS + "iot/latest/developerguide/s3-rule-action.html",
    reader=json_lines,
    verdict=JOINED,
    ending=".json",
)
def _iot(chance):
    return js(device=chance.host(), temperature=chance.randrange(-20, 40), ok=True)


@kind(
    "Bedrock invocation log",
    page="Monitor model invocation using CloudWatch Logs and Amazon S3",
    url=_AWS + "bedrock/latest/userguide/model-invocation-logging.html",
    reader=json_lines,
    verdict=JOINED,
    ending=".json",
)
def _bedrock(chance):
    return chance.rows(
        lambda: js(schemaType="ModelInvocationLog", timestamp=chance.iso(),
                   input={"inputBodyJson": {"messages": [{"text": chance.words()}]}}), 1, 4
    )  # fmt: skip


@kind(
    "SageMaker augmented manifest",
    page="Augmented manifest files (SageMaker AI)",
    url=_AWS + "sagemaker/latest/dg/augmented-manifest.html",
    reader=json_lines,
    verdict=JOINED,
    ending=".manifest",
)
def _augmented(chance):
    return chance.rows(
        lambda: js(**{"source-ref": f"s3://b{chance.path()}.jpg", "label": chance.randrange(9)})
    )


@kind(
    "SageMaker manifest",
    page="S3DataSource (SageMaker API): ManifestFile",
    url=_AWS + "sagemaker/latest/APIReference/API_S3DataSource.html",
    reader=json_document,
    verdict=LEFT,
    ending=".manifest",
)
def _manifest(chance):
    keys = [chance.path()[1:] for _ in range(3)]
    return json.dumps([{"prefix": "s3://bucket/images/"}, *keys])


@kind(
    "Transcribe result",
    page="Data input and output (Amazon Transcribe)",
    url=_AWS + "transcribe/latest/dg/how-input.html",
    reader=json_lines,
    verdict=JOINED,
    ending=".json",
)
def _transcribe(chance):
    return js(jobName=chance.word(), results={"transcripts": [{"transcript": chance.words()}]})


@kind(
    "Inspector SBOM",
    page="Exporting SBOMs with Amazon Inspector",
    url=_AWS + "inspector/latest/user/sbom-export.html",
    reader=json_document,
    verdict=LEFT,
    ending=".json",
)
def _sbom(chance):
    components = [{"type": "library", "name": chance.word(), "version": "1.2"} for _ in range(3)]
    document = {"bomFormat": "CycloneDX", "specVersion": "1.4", "components": components}
    return json.dumps(document, indent=4) + "\n"


@kind(
    "Verified Access, OCSF",
    page="Verified Access log examples",
    url=_AWS + "verified-access/latest/ug/access-logs-examples.html",
    reader=json_lines,
    verdict=JOINED,
    ending=".log",
)
def _verified_access(chance):
    return chance.rows(
        lambda: js(activity="Access Grant", class_uid="208001", time=chance.unix(),
                   device={"ip": chance.ip()}, http_request={"url": {"path": chance.path()}})
    )  # fmt: skip


@kind(
    "SES events by Firehose",
    page="Examples of event data that Amazon SES publishes to Firehose",
    url=_AWS + "ses/latest/dg/event-publishing-retrieving-firehose-examples.html",
    reader=json_lines,
    verdict=JOINED,
    ending="-2026-01-02-00-05-3b0d",
)
def _ses(chance):
    return chance.rows(
        lambda: js(eventType="Delivery", mail={"messageId": chance.hexes(20), "headers": []})
    )


@kind(
    "Transfer Family",
    page="CloudWatch log structure for Transfer Family",
    url=_AWS + "transfer/latest/userguide/cw-structure-logs.html",
    reader=json_lines,
    verdict=JOINED,
    ending=".json",
)
def _transfer(chance):
    return chance.rows(
        lambda: js(operation="OPEN", timestamp=chance.iso(), path=chance.path(), mode="WRITE")
    )
