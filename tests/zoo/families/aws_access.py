"""Access and flow logs that AWS services put into buckets as lines of text."""

from __future__ import annotations

from tests.zoo.chance import Chance
from tests.zoo.kinds import TEXT, Kind, js, rows
from tests.zoo.readers import headed, json_lines, lines, w3c

_AWS = "https://docs.aws.amazon.com/"
_S3_URL = _AWS + "AmazonS3/latest/userguide/LogFormat.html"
_FLOW_URL = _AWS + "vpc/latest/userguide/flow-log-records.html"
_CDN_URL = _AWS + "AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html"
_CDN2_URL = _AWS + "AmazonCloudFront/latest/DeveloperGuide/standard-logging.html"
_LB = _AWS + "elasticloadbalancing/latest/"


def s3_access_line(c: Chance, key: str = "") -> str:
    """One request to a bucket."""
    operation = c.choice(("REST.GET.OBJECT", "REST.PUT.OBJECT", "REST.HEAD.BUCKET"))
    path = key or c.path()[1:]
    return (
        f"{c.hexes(64)} my-bucket [{c.at('%d/%b/%Y:%H:%M:%S +0000')}] {c.ip()}"
        f" arn:aws:iam::123456789012:user/{c.word()} {c.hexes(16).upper()} {operation}"
        f' {path} "GET /{path}?x=1 HTTP/1.1" {c.status()} - {c.randrange(9999)} - 12 11'
        f' "-" "{c.agent()}" - {c.hexes(40)}= SigV4 TLS_AES_128_GCM_SHA256 AuthHeader'
        " my-bucket.s3.us-east-1.amazonaws.com TLSv1.3 - -"
    )


def _s3_access_latin(c):
    text = c.rows(lambda: s3_access_line(c, c.choice(("café.pdf", "plain.pdf"))))
    return text.encode("latin-1")


_CDN_FIELDS = (
    "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer)"
    " cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id"
)


def _cdn_row(c, fields: int = 15) -> str:
    values = [
        c.at("%Y-%m-%d\t%H:%M:%S"), "FRA56-P1", str(c.randrange(9999)), c.ip(),
        "GET", "d111111abcdef8.cloudfront.net", c.path(), str(c.status()), "-",
        c.agent().replace(" ", "%20"), "-", "-", "Hit", c.hexes(40) + "==", "more",
    ]  # fmt: skip
    return "\t".join(values[: fields - 1])


def _cloudfront_changed(c):
    fields = _CDN_FIELDS if c.number % 2 else _CDN_FIELDS + " cs-protocol"
    count = len(fields.split())
    return f"#Version: 1.0\n#Fields: {fields}\n" + c.rows(lambda: _cdn_row(c, count))


def _cloudfront_json(c):
    names = _CDN_FIELDS.split()
    return c.rows(lambda: js(**dict(zip(names, _cdn_row(c).split("\t"), strict=False))))


_FLOW = (
    "version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes start"
    " end action log-status"
)


def flow_row(c: Chance) -> str:
    """One record of the default format."""
    if c.random() < 0.1:
        return "2 123456789010 eni-1235b8ca123456789 - - - - - - - 1767312000 1767312060 - NODATA"
    ports = f"{c.randrange(1024, 65535)} {c.choice((22, 80, 443))}"
    action = c.choice(("ACCEPT OK", "REJECT OK"))
    return (
        f"2 123456789010 eni-1235b8ca123456789 {c.ip()} {c.ip()} {ports} 6"
        f" {c.randrange(99)} {c.randrange(9999)} {c.unix()} {c.unix()} {action}"
    )


_FLOW_NAME = "_vpcflowlogs_us-east-1_fl-1234abcd_20260102T0005Z_620439e5.log"


def _flow_custom(c):
    header = "version vpc-id subnet-id instance-id srcaddr dstaddr type pkt-srcaddr tcp-flags\n"
    return header + c.rows(
        lambda: (
            f"3 vpc-abcdefab012345678 subnet-aaaaaaaa012345678 i-0c50d5961bcb2d47b"
            f" {c.ip()} {c.ip()} IPv4 {c.ip()} {c.randrange(20)}"
        )
    )


def _flow_changed(c):
    if c.number % 2:
        return f"{_FLOW} vpc-id\n" + c.rows(lambda: flow_row(c) + " vpc-1")
    return f"{_FLOW}\n" + c.rows(lambda: flow_row(c))


def _transit_flow(c):
    header = (
        "version resource-type account-id tgw-id tgw-attachment-id srcaddr dstaddr srcport"
        " dstport protocol packets bytes start end log-status\n"
    )
    return header + c.rows(
        lambda: (
            f"6 TransitGateway 123456789012 tgw-0a1b tgw-attach-0c2d {c.ip()} {c.ip()}"
            f" {c.randrange(1024, 65535)} 443 6 {c.randrange(99)} 900 {c.unix()}"
            f" {c.unix()} OK"
        )
    )


def _flow_without_header(c):
    first = "2 123456789010 eni-1235b8ca123456789 10.0.0.1 10.0.0.2 80 80 6 1 40 1 2 ACCEPT OK\n"
    return first + c.rows(lambda: flow_row(c))


def _accelerator(c):
    header = (
        "version aws_account_id accelerator_id client_ip client_port accelerator_ip"
        " accelerator_port endpoint_ip endpoint_port protocol ip_address_type packets bytes"
        " start_time end_time action log-status\n"
    )
    return header + c.rows(
        lambda: (
            f"1.0 123456789012 aa-11 {c.ip()} 48870 {c.ip()} 80 10.0.0.3 80 TCP IPV4 2"
            f" {c.randrange(999)} {c.unix()} {c.unix()} ACCEPT OK"
        )
    )


def _lambda(c):
    def call() -> str:
        request = c.id()
        return (
            f"START RequestId: {request} Version: $LATEST\n"
            f"{c.at('%Y-%m-%dT%H:%M:%S.%3Z')}\t{request}\tINFO\t{c.words()}\n"
            f"END RequestId: {request}\n"
            f"REPORT RequestId: {request}\tDuration: {c.randrange(999)}.12 ms\t"
            "Billed Duration: 100 ms\tMemory Size: 128 MB\tMax Memory Used: 64 MB\t"
        )

    return c.rows(call, 1, 4)


# fmt: off
KINDS = (
    Kind("S3 access", "-7B4C0FE5", lines, _S3_URL, rows(s3_access_line)),
    Kind("S3 access, Latin-1 keys", "-9F21AA03", lines, _S3_URL, _s3_access_latin,
         declared={"format": "text", "encoding": "single_byte"}),
    Kind("S3 access, quotes in agents", "-00AB12CD", lines, _S3_URL,
         rows(lambda c: s3_access_line(c).replace('"-" "', '"-" "a"b '))),
    Kind("ALB access", "_elasticloadbalancing_us-east-1_app.my-lb.50dc6c495c0c9188_10.0.0.1_3b0d.log", lines,
         _LB + "application/load-balancer-access-logs.html",
         rows(lambda c: f"https {c.at('%Y-%m-%dT%H:%M:%S.%fZ')} app/my-lb/50dc6c495c0c9188"
         f" {c.ip()}:{c.randrange(1024, 65535)} 10.0.0.1:80 0.001 0.004 0.000"
         f" {c.status()} {c.status()} 34 366"
         f' "GET https://www.example.com:443{c.path()} HTTP/1.1" "{c.agent()}"'
         " ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-1:1:tg/a/7"
         f' "Root=1-{c.hexes(8)}-{c.hexes(24)}" "www.example.com" "arn:aws:acm:x" 0'
         f' {c.iso()} "forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_{c.hexes(32)}')),
    Kind("ALB connection", "_elasticloadbalancing_us-east-1_conn_log.app.my-lb.50dc_10.0.0.1_3b0d.log", lines,
         _LB + "application/load-balancer-connection-logs.html",
         rows(lambda c: f"{c.at('%Y-%m-%dT%H:%M:%S.%fZ')} {c.ip()} {c.randrange(1024, 65535)}"
         f' 443 TLSv1.3 TLS_AES_128_GCM_SHA256 0.006 "CN=a" {c.iso()}/{c.iso()}'
         f" {c.hexes(16)} Success TID_{c.hexes(32)}")),
    Kind("NLB access", "_elasticloadbalancing_us-east-1_net.my-nlb.c6e77e28c25b2234_2026_3b0d.log", lines,
         _LB + "network/load-balancer-access-logs.html",
         rows(lambda c: f"tls 2.0 {c.at('%Y-%m-%dT%H:%M:%S')} net/my-nlb/c6e77e28c25b2234 g3d4b5e8bb8464cd"
         f" {c.ip()}:{c.randrange(1024, 65535)} {c.ip()}:443 5 2 98 246 -"
         " arn:aws:acm:us-east-2:671290407336:certificate/2a108f19 - ECDHE-RSA tlsv12 -"
         " my-nlb-c6e77e28c25b2234.elb.us-east-2.amazonaws.com - - - 2026-01-02T00:00:01")),
    Kind("CLB access", "_elasticloadbalancing_us-east-1_my-loadbalancer_20260102T0005Z_1.2.3.4_5k.log", lines,
         _LB + "classic/access-log-collection.html",
         rows(lambda c: f"{c.at('%Y-%m-%dT%H:%M:%S.%fZ')} my-loadbalancer {c.ip()}:2817 10.0.0.1:80"
         f" 0.000073 0.001048 0.000057 {c.status()} 200 0 29"
         f' "GET http://www.example.com:80{c.path()} HTTP/1.1" "{c.agent()}" - -')),
    Kind("CloudFront v1", "E2EXAMPLE.2026-01-02-00.a1b2c3d4", w3c, _CDN_URL,
         lambda c: f"#Version: 1.0\n#Fields: {_CDN_FIELDS}\n" + c.rows(lambda: _cdn_row(c))),
    Kind("CloudFront v1, changed fields", "E2EXAMPLE.2026-01-02-00.a1b2c3d4", w3c, _CDN_URL,
         _cloudfront_changed),
    Kind("CloudFront v2, W3C", ".log", w3c, _CDN2_URL,
         lambda c: f"#Version: 1.0\n#Fields: {_CDN_FIELDS}\n" + c.rows(lambda: _cdn_row(c)), loose=lines),
    Kind("CloudFront v2, JSON", "", json_lines, _CDN2_URL, _cloudfront_json),
    Kind("CloudFront v2, plain", "", lines, _CDN2_URL, rows(_cdn_row)),
    Kind("CloudFront real-time", "", lines,
         _AWS + "AmazonCloudFront/latest/DeveloperGuide/real-time-logs.html",
         rows(lambda c: f"{c.unix()}.{c.randrange(999):03}\t{c.ip()}\t0.002"
         f"\t{c.status()}\t1380\tGET\thttps\twww.example.com\t{c.path()}\t-\tFRA56-P1"),
         declared=TEXT),
    Kind("VPC flow", _FLOW_NAME, headed, _FLOW_URL,
         lambda c: f"{_FLOW}\n" + c.rows(lambda: flow_row(c))),
    Kind("VPC flow, custom fields", _FLOW_NAME, headed, _FLOW_URL, _flow_custom),
    Kind("VPC flow, changed fields", _FLOW_NAME, headed, _FLOW_URL, _flow_changed),
    Kind("VPC flow, a header alone", _FLOW_NAME, headed, _FLOW_URL,
         lambda c: f"{_FLOW}\n" + (c.rows(lambda: flow_row(c)) if c.number == 1 else "")),
    Kind("Transit gateway flow", _FLOW_NAME, headed, _AWS + "vpc/latest/tgw/tgw-flow-logs.html",
         _transit_flow),
    Kind("VPC flow, health checks first", ".log", lines, _FLOW_URL, _flow_without_header),
    Kind("Global Accelerator flow", ".log", headed,
         _AWS + "global-accelerator/latest/dg/monitoring-global-accelerator.flow-logs.html",
         _accelerator, declared={"format": "vpc_flow"}),
    Kind("Redshift connection log", "_connectionlog_2026-01-02T00-05", lines,
         _AWS + "redshift/latest/mgmt/db-auditing.html",
         rows(lambda c: f"authenticated |{c.at('%a, %d %b %Y %H:%M:%S:%3')}|{c.ip()} "
         f"|5{c.randrange(9999)}|{c.randrange(99999)}|dev |{c.word()} |password |0|||0"),
         declared=TEXT),
    Kind("Redshift user activity log", "_useractivitylog_2026-01-02T00-05", lines,
         _AWS + "redshift/latest/mgmt/db-auditing.html",
         rows(lambda c: f"'{c.iso()} UTC [ db=dev user=rdsdb pid={c.randrange(9999)}"
         f" userid=1 xid={c.randrange(9999)} ]' LOG: SELECT {c.word()} FROM {c.word()}"),
         declared=TEXT),
    Kind("CloudWatch Logs export", "000000", lines,
         _AWS + "AmazonCloudWatch/latest/logs/S3Export.html",
         rows(lambda c: f"{c.at('%Y-%m-%dT%H:%M:%S.%3Z')} {c.level()} {c.words()}")),
    Kind("Lambda function text log", ".log", lines,
         _AWS + "lambda/latest/dg/monitoring-cloudwatchlogs-logformat.html", _lambda),
    Kind("API Gateway access, CLF", ".log", lines,
         _AWS + "apigateway/latest/developerguide/set-up-logging.html",
         rows(lambda c: f'{c.ip()} - - [{c.at("%d/%b/%Y:%H:%M:%S +0000")}] "GET {c.path()}'
         f' HTTP/1.1" {c.status()} {c.randrange(9999)} {c.id()}')),
    Kind("CloudFront function console", ".log", lines,
         _AWS + "AmazonCloudFront/latest/DeveloperGuide/edge-functions-logs.html",
         rows(lambda c: f"{c.hexes(20)}== START DistributionID: E2EXAMPLE\n"
         f"{c.hexes(20)}== {c.words()}\n{c.hexes(20)}== END")),
)
# fmt: on
