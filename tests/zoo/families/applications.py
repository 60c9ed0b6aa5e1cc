"""What applications, containers and agents write."""

from __future__ import annotations

import json

from tests.zoo.families.text import EITHER, JOINED, LEFT, js, kind, spaced
from tests.zoo.readers import document, entries, json_document, json_lines, lines

_ISO_START = r"\d{4}-\d\d-\d\d"
_OTEL_PAGE = "OpenTelemetry Protocol File Exporter"
_OTEL_URL = "https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/"
_K8S = "https://kubernetes.io/docs/concepts/cluster-administration/"


def java_line(chance) -> str:
    """One event of log4j's default pattern."""
    return (
        f"{chance.at('%Y-%m-%d %H:%M:%S,%3')} {chance.level():5} [main] com.example."
        f"{chance.word().title()} - {chance.words()}"
    )


@kind(
    "log4j",
    page="Pattern Layout (Log4j)",
    url="https://logging.apache.org/log4j/2.x/manual/pattern-layout.html",
    reader=lines,
    verdict=JOINED,
    ending="app.log",
)
def _log4j(chance):
    return chance.unended(chance.rows(lambda: java_line(chance)))


@kind(
    "log4j with stack traces",
    page="Throwable.printStackTrace (Java)",
    url="https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/lang/Throwable.html",
    reader=entries(_ISO_START),
    loose=lines,
    verdict=JOINED,
    ending="app.log",
)
def _stack(chance):
    trace = (
        "\njava.lang.IllegalStateException: {x: [1, 2\n\tat com.example.A.run(A.java:12)\n"
        '\tat java.base/java.lang.Thread.run(Thread.java:840)\nCaused by: java.io.IOException: "q\n'
        "\t... 2 more"
    )
    return chance.rows(lambda: java_line(chance) + (trace if chance.random() < 0.5 else ""))


@kind(
    "Spring Boot",
    page="Logging: log format (Spring Boot)",
    url="https://docs.spring.io/spring-boot/reference/features/logging.html",
    reader=lines,
    verdict=JOINED,
    ending="spring.log",
)
def _spring(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%dT%H:%M:%S.%3Z')}  INFO {chance.randrange(9999)} --- [main]"
            f" o.s.b.{chance.word().title()} : {chance.words()}"
        )
    )


@kind(
    "logstash-logback-encoder",
    page="Logstash Logback Encoder: standard fields",
    url="https://github.com/logfellow/logstash-logback-encoder",
    reader=json_lines,
    verdict=JOINED,
    ending=".json",
)
def _logback(chance):
    return chance.rows(
        lambda: js(**{"@timestamp": chance.iso(), "@version": "1", "message": chance.words(),
                      "stack_trace": "a\n\tat b(C.java:1)\n"})
    )  # fmt: skip


@kind(
    "Python logging",
    page="Basic logging tutorial (Python)",
    url="https://docs.python.org/3/howto/logging.html",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _python(chance):
    return chance.rows(lambda: f"{chance.level()}:{chance.word()}:{chance.words()}")


@kind(
    "Python logging with tracebacks",
    page="logging.Formatter.formatException (Python)",
    url="https://docs.python.org/3/library/logging.html",
    reader=entries(_ISO_START),
    loose=lines,
    verdict=EITHER,
    ending=".log",
)
def _traceback(chance):
    trace = (
        '\nTraceback (most recent call last):\n  File "app.py", line 3, in <module>\n'
        '    main()\n    ~~~~^^\nValueError: "open'
    )
    return chance.rows(
        lambda: f"{chance.at('%Y-%m-%d %H:%M:%S,%3')} - app - ERROR - {chance.words()}{trace}"
    )


@kind(
    "Python traceback alone",
    page="traceback (Python)",
    url="https://docs.python.org/3/library/traceback.html",
    reader=document,
    verdict=LEFT,
    ending=".txt",
)
def _traceback_alone(chance):
    return (
        'Traceback (most recent call last):\n  File "/app/main.py", line 9, in <module>\n'
        f"    {chance.word()}()\nKeyError: '{chance.word()}'\n"
    )


@kind(
    "klog",
    page="System Logs: klog (Kubernetes)",
    url=_K8S + "system-logs/",
    reader=lines,
    verdict=JOINED,
    ending="kubelet.log",
)
def _klog(chance):
    return chance.rows(
        lambda: (
            f"{chance.choice('IWE')}{chance.at('%m%d %H:%M:%S.%f')}    {chance.randrange(9999)}"
            f' kubelet.go:{chance.randrange(999)}] "Status updated" pod="kube-system/{chance.host()}"'
        )
    )


@kind(
    "CRI container log",
    page="Logging Architecture (Kubernetes): CRI log format",
    url=_K8S + "logging/",
    reader=lines,
    verdict=JOINED,
    ending="0.log",
)
def _cri(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%dT%H:%M:%S.%f123Z')} {chance.choice(('stdout', 'stderr'))}"
            f" {chance.choice('FFFP')} {chance.words()}"
        )
    )


@kind(
    "Docker json-file",
    page="JSON File logging driver (Docker)",
    url="https://docs.docker.com/engine/logging/drivers/json-file/",
    reader=json_lines,
    verdict=JOINED,
    ending="-json.log",
)
def _docker(chance):
    return chance.rows(lambda: js(log=f"{chance.words()}\n", stream="stdout", time=chance.iso()))


@kind(
    "Docker local driver",
    page="Local file logging driver (Docker): protobuf with lengths",
    url="https://docs.docker.com/engine/logging/drivers/local/",
    reader=document,
    verdict=LEFT,
    ending="container.log",
)
def _docker_local(chance):
    def frame():
        text = chance.words().encode()
        body = b"\x0a\x06stdout\x10\x80\x01\x1a" + bytes([len(text)]) + text
        size = len(body).to_bytes(4, "big")
        return size + body + size

    return b"".join(frame() for _ in range(4))


@kind(
    "Kubernetes audit",
    page="Auditing (Kubernetes)",
    url="https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/",
    reader=json_lines,
    verdict=JOINED,
    ending="audit.log",
)
def _k8s_audit(chance):
    return chance.rows(
        lambda: js(kind="Event", apiVersion="audit.k8s.io/v1", auditID=chance.id(), verb="get")
    )


@kind(
    "zap",
    page="zap: production configuration",
    url="https://pkg.go.dev/go.uber.org/zap",
    reader=json_lines,
    verdict=JOINED,
    ending=".log",
)
def _zap(chance):
    return chance.rows(
        lambda: js(level="info", ts=chance.unix() + 0.5, caller="a/b.go:1", msg=chance.words())
    )


@kind(
    "Go log package",
    page="log: standard flags (Go)",
    url="https://pkg.go.dev/log",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _go(chance):
    return chance.rows(lambda: f"{chance.at('%Y/%m/%d %H:%M:%S')} main.go:23: {chance.words()}")


@kind(
    "Go panic",
    page="runtime/debug: PrintStack (Go)",
    url="https://pkg.go.dev/runtime/debug",
    reader=document,
    verdict=LEFT,
    ending=".txt",
)
def _panic(chance):
    return (
        f"panic: {chance.words()}\n\ngoroutine 1 [running]:\nmain.main()\n\t/tmp/a.go:5 +0x18\n"
        "exit status 2\n"
    )


@kind(
    "logfmt",
    page="logfmt package (Go)",
    url="https://pkg.go.dev/github.com/kr/logfmt",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _logfmt(chance):
    return chance.rows(
        lambda: (
            f'time="{chance.iso()}" level=info msg="{chance.words()}" method=GET'
            f" path={chance.path()} status={chance.status()} duration=1.2ms"
        )
    )


@kind(
    "Heroku drains",
    page="Log Runtime: HTTP router log",
    url="https://devcenter.heroku.com/articles/http-routing",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _heroku(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%dT%H:%M:%S.%f+00:00')} heroku[router]: at=info method=GET"
            f' path="{chance.path()}" fwd="{chance.ip()}" dyno=web.1 status={chance.status()}'
        )
    )


@kind(
    "Rails",
    page="Debugging Rails Applications: the logger",
    url="https://guides.rubyonrails.org/debugging_rails_applications.html",
    reader=lines,
    verdict=JOINED,
    ending="production.log",
)
def _rails(chance):
    return chance.rows(
        lambda: (
            f"I, [{chance.at('%Y-%m-%dT%H:%M:%S.%f')} #{chance.randrange(9999)}]  INFO -- :"
            f' [{chance.id()}] Started GET "{chance.path()}" for {chance.ip()}'
        )
    )


@kind(
    "PHP error log",
    page="Runtime Configuration: error_log (PHP)",
    url="https://www.php.net/manual/en/errorfunc.configuration.php",
    reader=lines,
    verdict=JOINED,
    ending="php_errors.log",
)
def _php(chance):
    return chance.rows(
        lambda: (
            f"[{chance.at('%d-%b-%Y %H:%M:%S UTC')}] PHP Warning:  {chance.words()} in"
            f" /var/www{chance.path()}.php on line {chance.randrange(99)}"
        )
    )


@kind(
    ".NET console",
    page="Console log formatting (.NET)",
    url="https://learn.microsoft.com/en-us/dotnet/core/extensions/console-log-formatter",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _dotnet(chance):
    return chance.rows(
        lambda: f"info: Microsoft.Hosting.{chance.word().title()}[14]\n      {chance.words()}"
    )


@kind(
    "Serilog CLEF",
    page="Compact Log Event Format (CLEF)",
    url="https://clef-json.org/",
    reader=json_lines,
    verdict=JOINED,
    ending=".clef",
)
def _clef(chance):
    return chance.rows(
        lambda: js(**{"@t": chance.iso(), "@mt": "Hello, {User}", "User": chance.word()}),
        end="\r\n",
    )


@kind(
    "bunyan and pino",
    page="pino: log line format",
    url="https://getpino.io/",
    reader=json_lines,
    verdict=JOINED,
    ending=".log",
)
def _pino(chance):
    return chance.rows(
        lambda: js(
            level=30, time=chance.unix() * 1000, pid=chance.randrange(9999), msg=chance.words()
        )
    )


@kind(
    "JVM garbage collection",
    page="JEP 158: Unified JVM Logging",
    url="https://openjdk.org/jeps/158",
    reader=lines,
    verdict=JOINED,
    ending="gc.log",
)
def _gc(chance):
    return chance.rows(
        lambda: (
            f"[{chance.randrange(99)}.{chance.randrange(999):03}s][info][gc] GC(3) Pause Young"
            f" (Normal) (G1 Evacuation Pause) {chance.randrange(99)}M->4M(256M) 2.5ms"
        )
    )


@kind(
    "fluentd out_file",
    page="file output plugin (Fluentd)",
    url="https://docs.fluentd.org/output/file",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _fluentd(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%dT%H:%M:%S+00:00')}\tapp.{chance.word()}\t"
            + js(message=chance.words())
        )
    )


@kind(
    "Fluent Bit to S3",
    page="Amazon S3 output (Fluent Bit)",
    url="https://docs.fluentbit.io/manual/pipeline/outputs/s3",
    reader=json_lines,
    verdict=JOINED,
    ending="-object3b0d",
)
def _fluent_bit(chance):
    return chance.rows(
        lambda: js(date=chance.iso(), log=chance.words(), kubernetes={"pod": chance.host()})
    )


@kind(
    "Fluent Bit, msgpack",
    page="Fluent Bit: msgpack event format",
    url="https://docs.fluentbit.io/manual/administration/buffering-and-storage",
    reader=document,
    verdict=LEFT,
    ending=".flb",
)
def _fluent_msgpack(chance):
    def event():
        text = chance.word().encode()
        stamp = b"\xd7\x00" + chance.unix().to_bytes(4, "big") + b"\x12\x34\x56\x78"
        return b"\x92\x92" + stamp + b"\x80\x81\xa3log" + bytes([0xA0 | len(text)]) + text

    return b"".join(event() for _ in range(4))


@kind(
    "Vector to S3",
    page="AWS S3 sink (Vector)",
    url="https://vector.dev/docs/reference/configuration/sinks/aws_s3/",
    reader=json_lines,
    verdict=JOINED,
    ending=".log",
)
def _vector(chance):
    return chance.unended(
        chance.rows(lambda: js(host=chance.host(), message=chance.words(), timestamp=chance.iso()))
    )


@kind(
    "Vector to S3, JSON array framing",
    page="AWS S3 sink (Vector): character_delimited in an array",
    url="https://vector.dev/docs/reference/configuration/sinks/aws_s3/",
    reader=json_document,
    verdict=JOINED,
    ending=".json",
)
def _vector_array(chance):
    return json.dumps([{"host": chance.host(), "message": chance.words()} for _ in range(3)])


@kind(
    "Logstash json_lines",
    page="Json_lines codec plugin (Logstash)",
    url="https://www.elastic.co/docs/reference/logstash/plugins/plugins-codecs-json_lines",
    reader=json_lines,
    verdict=JOINED,
    ending=".part0.txt",
)
def _logstash(chance):
    return chance.rows(
        lambda: js(**{"@version": "1", "@timestamp": chance.iso(), "message": chance.words()})
    )


@kind(
    "Logstash line codec",
    page="S3 output plugin (Logstash)",
    url="https://www.elastic.co/docs/reference/logstash/plugins/plugins-outputs-s3",
    reader=lines,
    verdict=JOINED,
    ending=".part0.txt",
)
def _logstash_line(chance):
    return chance.rows(
        lambda: f"{chance.at('%Y-%m-%dT%H:%M:%S.%3Z')} {chance.host()} {chance.words()}"
    )


@kind("OpenTelemetry JSON", page=_OTEL_PAGE, url=_OTEL_URL, reader=json_lines, verdict=JOINED,
      ending=".json")  # fmt: skip
def _otel(chance):
    return chance.rows(
        lambda: js(resourceLogs=[{"resource": {}, "scopeLogs": [{"logRecords": [
            {"timeUnixNano": f"{chance.unix()}000000000", "body": {"stringValue": chance.words()}}
        ]}]}]), 1, 4,
    )  # fmt: skip


@kind("OpenTelemetry, one request an object", page="AWS S3 Exporter (OpenTelemetry Collector)",
      url="https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/exporter/awss3exporter",
      reader=json_lines, verdict=JOINED, ending=".json")  # fmt: skip
def _otel_one(chance):
    return js(resourceSpans=[{"scopeSpans": [{"spans": [{"traceId": chance.hexes(32)}]}]}])


@kind(
    "Splunk HEC events",
    page="Format events for HTTP Event Collector (Splunk)",
    url="https://docs.splunk.com/Documentation/Splunk/latest/Data/FormateventsforHTTPEventCollector",
    reader=json_lines,
    verdict=JOINED,
    ending=".json",
)
def _hec(chance):
    return chance.rows(
        lambda: js(time=chance.unix(), host=chance.host(), source="a", event=chance.words())
    )


@kind(
    "Snowplow enriched TSV",
    page="Understanding the enriched TSV format (Snowplow)",
    url="https://docs.snowplow.io/docs/fundamentals/canonical-event/understanding-the-enriched-tsv-format/",
    reader=lines,
    verdict=EITHER,
    ending=".tsv",
)
def _snowplow(chance):
    return chance.rows(
        lambda: (
            f"web\tweb\t{chance.at('%Y-%m-%d %H:%M:%S.%3')}\t\t\tpage_view\t{chance.id()}\t\tcf"
            f"\tjs-3.1\tssc-2.4\tsnowplow\t\t{chance.ip()}\t\t\thttp://example.com{chance.path()}"
        )
    )


@kind(
    "Segment",
    page="AWS S3 destination (Segment): data format",
    url="https://segment.com/docs/connections/storage/catalog/aws-s3/",
    reader=json_lines,
    verdict=JOINED,
    ending="1767312300000.3b0d.1.json",
)
def _segment(chance):
    return chance.rows(
        lambda: js(type="track", messageId=chance.id(), event="Clicked", properties={"é": "日本"})
    )


@kind(
    "Influx line protocol",
    page="Line protocol (InfluxDB)",
    url="https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/",
    reader=lines,
    verdict=EITHER,
    ending=".lp",
)
def _influx(chance):
    return chance.rows(
        lambda: (
            f"cpu,host={chance.host()},region=eu usage={chance.randrange(99)}.5,n=2i"
            f" {chance.unix()}000000000"
        )
    )


@kind(
    "Graphite plaintext",
    page="Feeding In Your Data: the plaintext protocol (Graphite)",
    url="https://graphite.readthedocs.io/en/latest/feeding-carbon.html",
    reader=lines,
    verdict=EITHER,
    ending=".txt",
)
def _graphite(chance):
    return chance.rows(
        lambda: f"servers.{chance.word()}.cpu {chance.randrange(99)} {chance.unix()}"
    )


@kind(
    "Prometheus text",
    page="Exposition formats (Prometheus)",
    url="https://prometheus.io/docs/instrumenting/exposition_formats/",
    reader=document,
    verdict=LEFT,
    ending=".prom",
)
def _prometheus(chance):
    return (
        "# HELP http_requests_total The total number of HTTP requests.\n"
        "# TYPE http_requests_total counter\n"
        f'http_requests_total{{method="post",code="200"}} {chance.randrange(9999)} {chance.unix()}000\n'
    )


@kind(
    "OpenMetrics text",
    page="OpenMetrics 1.0: the last line is # EOF",
    url="https://prometheus.io/docs/specs/om/open_metrics_spec/",
    reader=document,
    verdict=LEFT,
    ending=".txt",
)
def _open_metrics(chance):
    return f'# TYPE acme counter\nacme_total{{zone="a"}} {chance.randrange(999)}\n# EOF\n'


@kind(
    "strace",
    page="strace",
    url="https://man7.org/linux/man-pages/man1/strace.1.html",
    reader=lines,
    verdict=EITHER,
    ending=".strace",
)
def _strace(chance):
    return chance.rows(
        lambda: f'openat(AT_FDCWD, "{chance.path()}", O_RDONLY|O_CLOEXEC) = {chance.randrange(9)}'
    )


@kind(
    "GitHub Actions log",
    page="Using workflow run logs (GitHub Actions)",
    url="https://docs.github.com/en/actions/how-tos/monitor-workflows/use-workflow-run-logs",
    reader=lines,
    verdict=JOINED,
    ending="1_build.txt",
)
def _actions(chance):
    return "\ufeff" + chance.rows(
        lambda: f"{chance.at('%Y-%m-%dT%H:%M:%S.%f0Z')} \x1b[36;1m{chance.words()}\x1b[0m"
    )


@kind(
    "Airflow task log",
    page="Logging for tasks (Airflow)",
    url="https://airflow.apache.org/docs/apache-airflow/2.10.5/administration-and-deployment/logging-monitoring/logging-tasks.html",
    reader=lines,
    verdict=JOINED,
    ending="attempt=1.log",
)
def _airflow(chance):
    return chance.rows(
        lambda: (
            f"[{chance.at('%Y-%m-%dT%H:%M:%S.%3+0000')}] {{taskinstance.py:1103}} INFO -"
            f" {chance.words()}"
        )
    )


@kind(
    "Spark event log",
    page="Monitoring and Instrumentation: event logs (Spark)",
    url="https://spark.apache.org/docs/latest/monitoring.html",
    reader=json_lines,
    verdict=EITHER,
    ending="events_1_app",
)
def _spark(chance):
    first = spaced(Event="SparkListenerLogStart", **{"Spark Version": "4.1.1"}) + "\n"
    return first + chance.rows(
        lambda: spaced(Event="SparkListenerTaskEnd", **{"Stage ID": chance.randrange(99)})
    )


@kind(
    "DataDog archive",
    page="Log Archives (Datadog)",
    url="https://docs.datadoghq.com/logs/log_configuration/archives/",
    reader=json_lines,
    verdict=JOINED,
    ending="archive_000500.1234.3b0d.json",
)
def _datadog(chance):
    return chance.rows(
        lambda: js(
            _id=chance.hexes(20), date=chance.iso(), host=chance.host(), message=chance.words()
        )
    )


@kind(
    "Kafka Connect S3 sink, JSON",
    page="Amazon S3 Sink Connector (Confluent): JSON format",
    url="https://docs.confluent.io/kafka-connectors/s3-sink/current/overview.html",
    reader=json_lines,
    verdict=JOINED,
    ending="topic+0+0000000000.json",
)
def _kafka_json(chance):
    return chance.rows(lambda: js(f1=f"value{chance.randrange(99)}"))


@kind(
    "Kafka Connect S3 sink, byte array",
    page="Amazon S3 Sink Connector (Confluent): raw bytes format",
    url="https://docs.confluent.io/kafka-connectors/s3-sink/current/overview.html",
    reader=document,
    verdict=LEFT,
    ending="topic+0+0000000000.bin",
)
def _kafka_bytes(chance):
    return b"".join(chance.randbytes(24) + b"\n" for _ in range(4))


@kind(
    "Kafka broker log",
    page="Kafka: log4j.properties",
    url="https://kafka.apache.org/documentation/",
    reader=lines,
    verdict=JOINED,
    ending="server.log",
)
def _kafka_broker(chance):
    return chance.rows(
        lambda: (
            f"[{chance.at('%Y-%m-%d %H:%M:%S,%3')}] INFO [Partition topic-0 broker=1]"
            f" {chance.words()} (kafka.cluster.Partition)"
        )
    )
