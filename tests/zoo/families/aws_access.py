"""Access and flow logs that AWS services put into buckets as lines of text."""

from __future__ import annotations

from tests.zoo.chance import Chance
from tests.zoo.families.text import EITHER, JOINED, js, kind
from tests.zoo.readers import headed, json_lines, lines, w3c

_AWS = "https://docs.aws.amazon.com/"
_S3_PAGE = "Amazon S3 server access log format"
_S3_URL = _AWS + "AmazonS3/latest/userguide/LogFormat.html"
_FLOW_PAGE = "Flow log records"
_FLOW_URL = _AWS + "vpc/latest/userguide/flow-log-records.html"
_CDN_PAGE = "CloudFront standard logging (legacy)"
_CDN_URL = _AWS + "AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html"
_CDN2_PAGE = "CloudFront standard logging (v2)"
_CDN2_URL = _AWS + "AmazonCloudFront/latest/DeveloperGuide/standard-logging.html"
_LB = _AWS + "elasticloadbalancing/latest/"


def s3_access_line(chance: Chance, key: str = "") -> str:
    """One request to a bucket."""
    operation = chance.choice(("REST.GET.OBJECT", "REST.PUT.OBJECT", "REST.HEAD.BUCKET"))
    path = key or chance.path()[1:]
    return (
        f"{chance.hexes(64)} my-bucket [{chance.at('%d/%b/%Y:%H:%M:%S +0000')}] {chance.ip()}"
        f" arn:aws:iam::123456789012:user/{chance.word()} {chance.hexes(16).upper()} {operation}"
        f' {path} "GET /{path}?x=1 HTTP/1.1" {chance.status()} - {chance.randrange(9999)} - 12 11'
        f' "-" "{chance.agent()}" - {chance.hexes(40)}= SigV4 TLS_AES_128_GCM_SHA256 AuthHeader'
        " my-bucket.s3.us-east-1.amazonaws.com TLSv1.3 - -"
    )


@kind("S3 access", page=_S3_PAGE, url=_S3_URL, reader=lines, verdict=JOINED, ending="-7B4C0FE5")
def _s3_access(chance):
    return chance.rows(lambda: s3_access_line(chance))


@kind("S3 access, Latin-1 keys", page=_S3_PAGE, url=_S3_URL, reader=lines, verdict=JOINED,
      ending="-9F21AA03")  # fmt: skip
def _s3_access_latin(chance):
    text = chance.rows(lambda: s3_access_line(chance, chance.choice(("café.pdf", "plain.pdf"))))
    return text.encode("latin-1")


@kind("S3 access, quotes in agents", page=_S3_PAGE, url=_S3_URL, reader=lines, verdict=EITHER,
      ending="-00AB12CD")  # fmt: skip
def _s3_access_quotes(chance):
    return chance.rows(lambda: s3_access_line(chance).replace('"-" "', '"-" "a"b '))


@kind(
    "ALB access",
    page="Access logs for your Application Load Balancer",
    url=_LB + "application/load-balancer-access-logs.html",
    reader=lines,
    verdict=JOINED,
    ending="_elasticloadbalancing_us-east-1_app.my-lb.50dc6c495c0c9188_10.0.0.1_3b0d.log",
)
def _alb(chance):
    return chance.rows(
        lambda: (
            f"https {chance.at('%Y-%m-%dT%H:%M:%S.%fZ')} app/my-lb/50dc6c495c0c9188"
            f" {chance.ip()}:{chance.randrange(1024, 65535)} 10.0.0.1:80 0.001 0.004 0.000"
            f" {chance.status()} {chance.status()} 34 366"
            f' "GET https://www.example.com:443{chance.path()} HTTP/1.1" "{chance.agent()}"'
            " ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-1:1:tg/a/7"
            f' "Root=1-{chance.hexes(8)}-{chance.hexes(24)}" "www.example.com" "arn:aws:acm:x" 0'
            f' {chance.iso()} "forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_{chance.hexes(32)}'
        )
    )


@kind(
    "ALB connection",
    page="Connection logs for your Application Load Balancer",
    url=_LB + "application/load-balancer-connection-logs.html",
    reader=lines,
    verdict=JOINED,
    ending="_elasticloadbalancing_us-east-1_conn_log.app.my-lb.50dc_10.0.0.1_3b0d.log",
)
def _alb_connection(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%dT%H:%M:%S.%fZ')} {chance.ip()} {chance.randrange(1024, 65535)}"
            f' 443 TLSv1.3 TLS_AES_128_GCM_SHA256 0.006 "CN=a" {chance.iso()}/{chance.iso()}'
            f" {chance.hexes(16)} Success TID_{chance.hexes(32)}"
        )
    )


@kind(
    "NLB access",
    page="Access logs for your Network Load Balancer",
    url=_LB + "network/load-balancer-access-logs.html",
    reader=lines,
    verdict=JOINED,
    ending="_elasticloadbalancing_us-east-1_net.my-nlb.c6e77e28c25b2234_2026_3b0d.log",
)
def _nlb(chance):
    return chance.rows(
        lambda: (
            f"tls 2.0 {chance.at('%Y-%m-%dT%H:%M:%S')} net/my-nlb/c6e77e28c25b2234 g3d4b5e8bb8464cd"
            f" {chance.ip()}:{chance.randrange(1024, 65535)} {chance.ip()}:443 5 2 98 246 -"
            " arn:aws:acm:us-east-2:671290407336:certificate/2a108f19 - ECDHE-RSA tlsv12 -"
            " my-nlb-c6e77e28c25b2234.elb.us-east-2.amazonaws.com - - - 2026-01-02T00:00:01"
        )
    )


@kind(
    "CLB access",
    page="Access logs for your Classic Load Balancer",
    url=_LB + "classic/access-log-collection.html",
    reader=lines,
    verdict=JOINED,
    ending="_elasticloadbalancing_us-east-1_my-loadbalancer_20260102T0005Z_1.2.3.4_5k.log",
)
def _clb(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%dT%H:%M:%S.%fZ')} my-loadbalancer {chance.ip()}:2817 10.0.0.1:80"
            f" 0.000073 0.001048 0.000057 {chance.status()} 200 0 29"
            f' "GET http://www.example.com:80{chance.path()} HTTP/1.1" "{chance.agent()}" - -'
        )
    )


_CDN_FIELDS = (
    "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer)"
    " cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id"
)


def _cdn_row(chance, fields: int = 15) -> str:
    values = [
        chance.at("%Y-%m-%d\t%H:%M:%S"), "FRA56-P1", str(chance.randrange(9999)), chance.ip(),
        "GET", "d111111abcdef8.cloudfront.net", chance.path(), str(chance.status()), "-",
        chance.agent().replace(" ", "%20"), "-", "-", "Hit", chance.hexes(40) + "==", "more",
    ]  # fmt: skip
    return "\t".join(values[: fields - 1])


@kind("CloudFront v1", page=_CDN_PAGE, url=_CDN_URL, reader=w3c, verdict=JOINED,
      ending="E2EXAMPLE.2026-01-02-00.a1b2c3d4")  # fmt: skip
def _cloudfront(chance):
    return f"#Version: 1.0\n#Fields: {_CDN_FIELDS}\n" + chance.rows(lambda: _cdn_row(chance))


@kind("CloudFront v1, changed fields", page=_CDN_PAGE, url=_CDN_URL, reader=w3c, verdict=EITHER,
      ending="E2EXAMPLE.2026-01-02-00.a1b2c3d4")  # fmt: skip
def _cloudfront_changed(chance):
    fields = _CDN_FIELDS if chance.number % 2 else _CDN_FIELDS + " cs-protocol"
    count = len(fields.split())
    return f"#Version: 1.0\n#Fields: {fields}\n" + chance.rows(lambda: _cdn_row(chance, count))


@kind("CloudFront v2, W3C", page=_CDN2_PAGE, url=_CDN2_URL, reader=w3c, verdict=JOINED,
      ending=".log")  # fmt: skip
def _cloudfront_two(chance):
    return f"#Version: 1.0\n#Fields: {_CDN_FIELDS}\n" + chance.rows(lambda: _cdn_row(chance))


@kind("CloudFront v2, JSON", page=_CDN2_PAGE, url=_CDN2_URL, reader=json_lines, verdict=JOINED,
      ending="")  # fmt: skip
def _cloudfront_json(chance):
    names = _CDN_FIELDS.split()
    return chance.rows(lambda: js(**dict(zip(names, _cdn_row(chance).split("\t"), strict=False))))


@kind(
    "CloudFront v2, plain", page=_CDN2_PAGE, url=_CDN2_URL, reader=lines, verdict=EITHER, ending=""
)
def _cloudfront_plain(chance):
    return chance.rows(lambda: _cdn_row(chance))


@kind(
    "CloudFront real-time",
    page="Use real-time access logs",
    url=_AWS + "AmazonCloudFront/latest/DeveloperGuide/real-time-logs.html",
    reader=lines,
    verdict=EITHER,
    ending="",
)
def _cloudfront_real_time(chance):
    return chance.rows(
        lambda: (
            f"{chance.unix()}.{chance.randrange(999):03}\t{chance.ip()}\t0.002"
            f"\t{chance.status()}\t1380\tGET\thttps\twww.example.com\t{chance.path()}\t-\tFRA56-P1"
        )
    )


_FLOW = (
    "version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes start"
    " end action log-status"
)


def flow_row(chance: Chance) -> str:
    """One record of the default format."""
    if chance.random() < 0.1:
        return "2 123456789010 eni-1235b8ca123456789 - - - - - - - 1767312000 1767312060 - NODATA"
    ports = f"{chance.randrange(1024, 65535)} {chance.choice((22, 80, 443))}"
    action = chance.choice(("ACCEPT OK", "REJECT OK"))
    return (
        f"2 123456789010 eni-1235b8ca123456789 {chance.ip()} {chance.ip()} {ports} 6"
        f" {chance.randrange(99)} {chance.randrange(9999)} {chance.unix()} {chance.unix()} {action}"
    )


_FLOW_NAME = "_vpcflowlogs_us-east-1_fl-1234abcd_20260102T0005Z_620439e5.log"


@kind("VPC flow", page=_FLOW_PAGE, url=_FLOW_URL, reader=headed, verdict=JOINED,
      ending=_FLOW_NAME)  # fmt: skip
def _flow(chance):
    return f"{_FLOW}\n" + chance.rows(lambda: flow_row(chance))


@kind("VPC flow, custom fields", page=_FLOW_PAGE, url=_FLOW_URL, reader=headed, verdict=JOINED,
      ending=_FLOW_NAME)  # fmt: skip
def _flow_custom(chance):
    header = "version vpc-id subnet-id instance-id srcaddr dstaddr type pkt-srcaddr tcp-flags\n"
    return header + chance.rows(
        lambda: (
            f"3 vpc-abcdefab012345678 subnet-aaaaaaaa012345678 i-0c50d5961bcb2d47b"
            f" {chance.ip()} {chance.ip()} IPv4 {chance.ip()} {chance.randrange(20)}"
        )
    )


@kind("VPC flow, changed fields", page=_FLOW_PAGE, url=_FLOW_URL, reader=headed, verdict=EITHER,
      ending=_FLOW_NAME)  # fmt: skip
def _flow_changed(chance):
    if chance.number % 2:
        return f"{_FLOW} vpc-id\n" + chance.rows(lambda: flow_row(chance) + " vpc-1")
    return f"{_FLOW}\n" + chance.rows(lambda: flow_row(chance))


@kind("VPC flow, a header alone", page=_FLOW_PAGE, url=_FLOW_URL, reader=headed, verdict=EITHER,
      ending=_FLOW_NAME)  # fmt: skip
def _flow_empty(chance):
    return f"{_FLOW}\n" + (chance.rows(lambda: flow_row(chance)) if chance.number == 1 else "")


@kind(
    "Transit gateway flow",
    page="Transit Gateway Flow Log records",
    url=_AWS + "vpc/latest/tgw/tgw-flow-logs.html",
    reader=headed,
    verdict=JOINED,
    ending=_FLOW_NAME,
)
def _transit_flow(chance):
    header = (
        "version resource-type account-id tgw-id tgw-attachment-id srcaddr dstaddr srcport"
        " dstport protocol packets bytes start end log-status\n"
    )
    return header + chance.rows(
        lambda: (
            f"6 TransitGateway 123456789012 tgw-0a1b tgw-attach-0c2d {chance.ip()} {chance.ip()}"
            f" {chance.randrange(1024, 65535)} 443 6 {chance.randrange(99)} 900 {chance.unix()}"
            f" {chance.unix()} OK"
        )
    )


@kind(
    "VPC flow, health checks first",
    page=_FLOW_PAGE,
    url=_FLOW_URL,
    reader=lines,
    verdict=EITHER,
    ending=".log",
)
def _flow_without_header(chance):
    first = "2 123456789010 eni-1235b8ca123456789 10.0.0.1 10.0.0.2 80 80 6 1 40 1 2 ACCEPT OK\n"
    return first + chance.rows(lambda: flow_row(chance))


@kind(
    "Global Accelerator flow",
    page="Flow log records in AWS Global Accelerator",
    url=_AWS + "global-accelerator/latest/dg/monitoring-global-accelerator.flow-logs.html",
    reader=headed,
    verdict=EITHER,
    ending=".log",
)
def _accelerator(chance):
    header = (
        "version aws_account_id accelerator_id client_ip client_port accelerator_ip"
        " accelerator_port endpoint_ip endpoint_port protocol ip_address_type packets bytes"
        " start_time end_time action log-status\n"
    )
    return header + chance.rows(
        lambda: (
            f"1.0 123456789012 aa-11 {chance.ip()} 48870 {chance.ip()} 80 10.0.0.3 80 TCP IPV4 2"
            f" {chance.randrange(999)} {chance.unix()} {chance.unix()} ACCEPT OK"
        )
    )


@kind(
    "Redshift connection log",
    page="Database audit logging (Amazon Redshift)",
    url=_AWS + "redshift/latest/mgmt/db-auditing.html",
    reader=lines,
    verdict=EITHER,
    ending="_connectionlog_2026-01-02T00-05",
)
def _redshift_connections(chance):
    return chance.rows(
        lambda: (
            f"authenticated |{chance.at('%a, %d %b %Y %H:%M:%S:%3')}|{chance.ip()} "
            f"|5{chance.randrange(9999)}|{chance.randrange(99999)}|dev |{chance.word()} |password |0|||0"
        )
    )


@kind(
    "Redshift user activity log",
    page="Database audit logging (Amazon Redshift)",
    url=_AWS + "redshift/latest/mgmt/db-auditing.html",
    reader=lines,
    verdict=EITHER,
    ending="_useractivitylog_2026-01-02T00-05",
)
def _redshift_activity(chance):
    return chance.rows(
        lambda: (
            f"'{chance.iso()} UTC [ db=dev user=rdsdb pid={chance.randrange(9999)}"
            f" userid=1 xid={chance.randrange(9999)} ]' LOG: SELECT {chance.word()} FROM {chance.word()}"
        )
    )


@kind(
    "CloudWatch Logs export",
    page="Exporting log data to Amazon S3",
    url=_AWS + "AmazonCloudWatch/latest/logs/S3Export.html",
    reader=lines,
    verdict=JOINED,
    ending="000000",
)
def _cloudwatch_export(chance):
    return chance.rows(
        lambda: f"{chance.at('%Y-%m-%dT%H:%M:%S.%3Z')} {chance.level()} {chance.words()}"
    )


@kind(
    "Lambda function text log",
    page="Lambda function log formats",
    url=_AWS + "lambda/latest/dg/monitoring-cloudwatchlogs-logformat.html",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _lambda(chance):
    def call() -> str:
        request = chance.id()
        return (
            f"START RequestId: {request} Version: $LATEST\n"
            f"{chance.at('%Y-%m-%dT%H:%M:%S.%3Z')}\t{request}\tINFO\t{chance.words()}\n"
            f"END RequestId: {request}\n"
            f"REPORT RequestId: {request}\tDuration: {chance.randrange(999)}.12 ms\t"
            "Billed Duration: 100 ms\tMemory Size: 128 MB\tMax Memory Used: 64 MB\t"
        )

    return chance.rows(call, 1, 4)


@kind(
    "API Gateway access, CLF",
    page="Set up CloudWatch logging for REST APIs in API Gateway",
    url=_AWS + "apigateway/latest/developerguide/set-up-logging.html",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _api_gateway(chance):
    return chance.rows(
        lambda: (
            f'{chance.ip()} - - [{chance.at("%d/%b/%Y:%H:%M:%S +0000")}] "GET {chance.path()}'
            f' HTTP/1.1" {chance.status()} {chance.randrange(9999)} {chance.id()}'
        )
    )


@kind(
    "CloudFront function console",
    page="Edge function logs",
    url=_AWS + "AmazonCloudFront/latest/DeveloperGuide/edge-functions-logs.html",
    reader=lines,
    verdict=EITHER,
    ending=".log",
)
def _edge_function(chance):
    return chance.rows(
        lambda: (
            f"{chance.hexes(20)}== START DistributionID: E2EXAMPLE\n"
            f"{chance.hexes(20)}== {chance.words()}\n{chance.hexes(20)}== END"
        )
    )
