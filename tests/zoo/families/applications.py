"""What applications, containers and agents write."""

from __future__ import annotations

import json

from tests.zoo.kinds import TEXT, Kind, js, rows, spaced
from tests.zoo.readers import document, entries, json_document, json_lines, lines

_ISO_START = r"\d{4}-\d\d-\d\d"
_OTEL_URL = "https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/"
_K8S = "https://kubernetes.io/docs/concepts/cluster-administration/"


def java_line(c) -> str:
    """One event of log4j's default pattern."""
    return (
        f"{c.at('%Y-%m-%d %H:%M:%S,%3')} {c.level():5} [main] com.example."
        f"{c.word().title()} - {c.words()}"
    )


def _stack(c):
    trace = (
        "\njava.lang.IllegalStateException: {x: [1, 2\n\tat com.example.A.run(A.java:12)\n"
        '\tat java.base/java.lang.Thread.run(Thread.java:840)\nCaused by: java.io.IOException: "q\n'
        "\t... 2 more"
    )
    return c.rows(lambda: java_line(c) + (trace if c.random() < 0.5 else ""))


def _traceback(c):
    trace = (
        '\nTraceback (most recent call last):\n  File "app.py", line 3, in <module>\n'
        '    main()\n    ~~~~^^\nValueError: "open'
    )
    return c.rows(lambda: f"{c.at('%Y-%m-%d %H:%M:%S,%3')} - app - ERROR - {c.words()}{trace}")


def _docker_local(c):
    def frame():
        text = c.words().encode()
        body = b"\x0a\x06stdout\x10\x80\x01\x1a" + bytes([len(text)]) + text
        size = len(body).to_bytes(4, "big")
        return size + body + size

    return b"".join(frame() for _ in range(4))


def _spark(c):
    first = spaced(Event="SparkListenerLogStart", **{"Spark Version": "4.1.1"}) + "\n"
    return first + c.rows(
        lambda: spaced(Event="SparkListenerTaskEnd", **{"Stage ID": c.randrange(99)})
    )


# fmt: off
KINDS = (
    Kind("log4j", "app.log", lines,
         "https://logging.apache.org/log4j/2.x/manual/pattern-layout.html",
         lambda c: c.unended(c.rows(lambda: java_line(c)))),
    Kind("log4j with stack traces", "app.log", entries(_ISO_START),
         "https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/lang/Throwable.html",
         _stack, loose=lines),
    Kind("Spring Boot", "spring.log", lines,
         "https://docs.spring.io/spring-boot/reference/features/logging.html",
         rows(lambda c: f"{c.at('%Y-%m-%dT%H:%M:%S.%3Z')}  INFO {c.randrange(9999)} --- [main]"
         f" o.s.b.{c.word().title()} : {c.words()}")),
    Kind("logstash-logback-encoder", ".json", json_lines,
         "https://github.com/logfellow/logstash-logback-encoder",
         rows(lambda c: js(**{"@timestamp": c.iso(), "@version": "1", "message": c.words(),
               "stack_trace": "a\n\tat b(C.java:1)\n"}))),
    Kind("Python logging", ".log", lines, "https://docs.python.org/3/howto/logging.html",
         rows(lambda c: f"{c.level()}:{c.word()}:{c.words()}")),
    Kind("Python logging with tracebacks", ".log", entries(_ISO_START),
         "https://docs.python.org/3/library/logging.html", _traceback, loose=lines),
    Kind("Python traceback alone", ".txt", document,
         "https://docs.python.org/3/library/traceback.html",
         lambda c: 'Traceback (most recent call last):\n  File "/app/main.py", line 9, in <module>\n'
         f"    {c.word()}()\nKeyError: '{c.word()}'\n", expected="unknown_format"),
    Kind("klog", "kubelet.log", lines, _K8S + "system-logs/",
         rows(lambda c: f"{c.choice('IWE')}{c.at('%m%d %H:%M:%S.%f')}    {c.randrange(9999)}"
         f' kubelet.go:{c.randrange(999)}] "Status updated" pod="kube-system/{c.host()}"')),
    Kind("CRI container log", "0.log", lines, _K8S + "logging/",
         rows(lambda c: f"{c.at('%Y-%m-%dT%H:%M:%S.%f123Z')} {c.choice(('stdout', 'stderr'))}"
         f" {c.choice('FFFP')} {c.words()}")),
    Kind("Docker json-file", "-json.log", json_lines,
         "https://docs.docker.com/engine/logging/drivers/json-file/",
         rows(lambda c: js(log=f"{c.words()}\n", stream="stdout", time=c.iso()))),
    Kind("Docker local driver", "container.log", document,
         "https://docs.docker.com/engine/logging/drivers/local/", _docker_local, expected="binary"),
    Kind("Kubernetes audit", "audit.log", json_lines,
         "https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/",
         rows(lambda c: js(kind="Event", apiVersion="audit.k8s.io/v1", auditID=c.id(), verb="get"))),
    Kind("zap", ".log", json_lines, "https://pkg.go.dev/go.uber.org/zap",
         rows(lambda c: js(level="info", ts=c.unix() + 0.5, caller="a/b.go:1", msg=c.words()))),
    Kind("Go log package", ".log", lines, "https://pkg.go.dev/log",
         rows(lambda c: f"{c.at('%Y/%m/%d %H:%M:%S')} main.go:23: {c.words()}")),
    Kind("logfmt", ".log", lines, "https://pkg.go.dev/github.com/kr/logfmt",
         rows(lambda c: f'time="{c.iso()}" level=info msg="{c.words()}" method=GET'
         f" path={c.path()} status={c.status()} duration=1.2ms")),
    Kind("Heroku drains", ".log", lines, "https://devcenter.heroku.com/articles/http-routing",
         rows(lambda c: f"{c.at('%Y-%m-%dT%H:%M:%S.%f+00:00')} heroku[router]: at=info method=GET"
         f' path="{c.path()}" fwd="{c.ip()}" dyno=web.1 status={c.status()}')),
    Kind("Rails", "production.log", lines,
         "https://guides.rubyonrails.org/debugging_rails_applications.html",
         rows(lambda c: f"I, [{c.at('%Y-%m-%dT%H:%M:%S.%f')} #{c.randrange(9999)}]  INFO -- :"
         f' [{c.id()}] Started GET "{c.path()}" for {c.ip()}')),
    Kind("PHP error log", "php_errors.log", lines,
         "https://www.php.net/manual/en/errorfunc.configuration.php",
         rows(lambda c: f"[{c.at('%d-%b-%Y %H:%M:%S UTC')}] PHP Warning:  {c.words()} in"
         f" /var/www{c.path()}.php on line {c.randrange(99)}")),
    Kind(".NET console", ".log", lines,
         "https://learn.microsoft.com/en-us/dotnet/core/extensions/console-log-formatter",
         rows(lambda c: f"info: Microsoft.Hosting.{c.word().title()}[14]\n      {c.words()}")),
    Kind("Serilog CLEF", ".clef", json_lines, "https://clef-json.org/", lambda c: c.rows(
         lambda: js(**{"@t": c.iso(), "@mt": "Hello, {User}", "User": c.word()}), end="\r\n")),
    Kind("bunyan and pino", ".log", json_lines, "https://getpino.io/", rows(lambda c: js(
         level=30, time=c.unix() * 1000, pid=c.randrange(9999), msg=c.words()))),
    Kind("JVM garbage collection", "gc.log", lines, "https://openjdk.org/jeps/158",
         rows(lambda c: f"[{c.randrange(99)}.{c.randrange(999):03}s][info][gc] GC(3) Pause Young"
         f" (Normal) (G1 Evacuation Pause) {c.randrange(99)}M->4M(256M) 2.5ms")),
    Kind("fluentd out_file", ".log", lines, "https://docs.fluentd.org/output/file",
         rows(lambda c: f"{c.at('%Y-%m-%dT%H:%M:%S+00:00')}\tapp.{c.word()}\t"
         + js(message=c.words()))),
    Kind("Fluent Bit to S3", "-object3b0d", json_lines,
         "https://docs.fluentbit.io/manual/pipeline/outputs/s3",
         rows(lambda c: js(date=c.iso(), log=c.words(), kubernetes={"pod": c.host()}))),
    Kind("Vector to S3", ".log", json_lines,
         "https://vector.dev/docs/reference/configuration/sinks/aws_s3/", lambda c: c.unended(
         c.rows(lambda: js(host=c.host(), message=c.words(), timestamp=c.iso())))),
    Kind("Vector to S3, JSON array framing", ".json", json_document,
         "https://vector.dev/docs/reference/configuration/sinks/aws_s3/",
         lambda c: json.dumps([{"host": c.host(), "message": c.words()} for _ in range(3)])),
    Kind("Logstash json_lines", ".part0.txt", json_lines,
         "https://www.elastic.co/docs/reference/logstash/plugins/plugins-codecs-json_lines",
         rows(lambda c: js(**{"@version": "1", "@timestamp": c.iso(), "message": c.words()}))),
    Kind("Logstash line codec", ".part0.txt", lines,
         "https://www.elastic.co/docs/reference/logstash/plugins/plugins-outputs-s3",
         rows(lambda c: f"{c.at('%Y-%m-%dT%H:%M:%S.%3Z')} {c.host()} {c.words()}")),
    Kind("OpenTelemetry JSON", ".json", json_lines, _OTEL_URL, lambda c: c.rows(
         lambda: js(resourceLogs=[{"resource": {}, "scopeLogs": [{"logRecords": [
          {"timeUnixNano": f"{c.unix()}000000000", "body": {"stringValue": c.words()}}]}]}]), 1, 4,
         )),
    Kind("OpenTelemetry, one request an object", ".json", json_lines,
         "https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/exporter/awss3exporter",
         lambda c: js(resourceSpans=[{"scopeSpans": [{"spans": [{"traceId": c.hexes(32)}]}]}])),
    Kind("Splunk HEC events", ".json", json_lines,
         "https://docs.splunk.com/Documentation/Splunk/latest/Data/FormateventsforHTTPEventCollector",
         rows(lambda c: js(time=c.unix(), host=c.host(), source="a", event=c.words()))),
    Kind("Snowplow enriched TSV", ".tsv", lines,
         "https://docs.snowplow.io/docs/fundamentals/canonical-event/understanding-the-enriched-tsv-format/",
         rows(lambda c: f"web\tweb\t{c.at('%Y-%m-%d %H:%M:%S.%3')}\t\t\tpage_view\t{c.id()}\t\tcf"
         f"\tjs-3.1\tssc-2.4\tsnowplow\t\t{c.ip()}\t\t\thttp://example.com{c.path()}"),
         declared=TEXT),
    Kind("Segment", "1767312300000.3b0d.1.json", json_lines,
         "https://segment.com/docs/connections/storage/catalog/aws-s3/",
         rows(lambda c: js(type="track", messageId=c.id(), event="Clicked", properties={"é": "日本"}))),
    Kind("Influx line protocol", ".lp", lines,
         "https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/",
         rows(lambda c: f"cpu,host={c.host()},region=eu usage={c.randrange(99)}.5,n=2i"
         f" {c.unix()}000000000"), declared=TEXT),
    Kind("Graphite plaintext", ".txt", lines,
         "https://graphite.readthedocs.io/en/latest/feeding-carbon.html",
         rows(lambda c: f"servers.{c.word()}.cpu {c.randrange(99)} {c.unix()}"), declared=TEXT),
    Kind("Prometheus text", ".prom", document,
         "https://prometheus.io/docs/instrumenting/exposition_formats/",
         lambda c: "# HELP http_requests_total The total number of HTTP requests.\n"
         "# TYPE http_requests_total counter\n"
         f'http_requests_total{{method="post",code="200"}} {c.randrange(9999)} {c.unix()}000\n',
         expected="unknown_format"),
    Kind("strace", ".strace", lines, "https://man7.org/linux/man-pages/man1/strace.1.html",
         rows(lambda c: f'openat(AT_FDCWD, "{c.path()}", O_RDONLY|O_CLOEXEC) = {c.randrange(9)}'),
         declared=TEXT),
    Kind("GitHub Actions log", "1_build.txt", lines,
         "https://docs.github.com/en/actions/how-tos/monitor-workflows/use-workflow-run-logs",
         lambda c: ("\ufeff" + c.rows(
         lambda: f"{c.at('%Y-%m-%dT%H:%M:%S.%f0Z')} \x1b[36;1m{c.words()}\x1b[0m"))),
    Kind("Airflow task log", "attempt=1.log", lines,
         "https://airflow.apache.org/docs/apache-airflow/2.10.5/administration-and-deployment/logging-monitoring/logging-tasks.html",
         rows(lambda c: f"[{c.at('%Y-%m-%dT%H:%M:%S.%3+0000')}] {{taskinstance.py:1103}} INFO -"
         f" {c.words()}")),
    Kind("Spark event log", "events_1_app", json_lines,
         "https://spark.apache.org/docs/latest/monitoring.html", _spark),
    Kind("DataDog archive", "archive_000500.1234.3b0d.json", json_lines,
         "https://docs.datadoghq.com/logs/log_configuration/archives/", rows(lambda c: js(
         _id=c.hexes(20), date=c.iso(), host=c.host(), message=c.words()))),
    Kind("Kafka Connect S3 sink, JSON", "topic+0+0000000000.json", json_lines,
         "https://docs.confluent.io/kafka-connectors/s3-sink/current/overview.html",
         rows(lambda c: js(f1=f"value{c.randrange(99)}"))),
    Kind("Kafka broker log", "server.log", lines, "https://kafka.apache.org/documentation/",
         rows(lambda c: f"[{c.at('%Y-%m-%d %H:%M:%S,%3')}] INFO [Partition topic-0 broker=1]"
         f" {c.words()} (kafka.cluster.Partition)")),
)
# fmt: on
