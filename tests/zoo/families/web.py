"""Access and error logs of web servers and proxies."""

from __future__ import annotations

from tests.zoo.families.text import EITHER, JOINED, js, kind
from tests.zoo.readers import entries, json_lines, lines, w3c

_APACHE_PAGE = "Log Files (Apache HTTP Server)"
_APACHE_URL = "https://httpd.apache.org/docs/2.4/logs.html"
_NGINX_PAGE = "Module ngx_http_log_module"
_NGINX_URL = "https://nginx.org/en/docs/http/ngx_http_log_module.html"
_IIS_PAGE = "W3C Extended Log File Format"
_IIS_URL = "https://www.w3.org/TR/WD-logfile.html"


def common_line(chance) -> str:
    """Common Log Format."""
    return (
        f"{chance.ip()} - {chance.choice(('-', 'frank'))} [{chance.at('%d/%b/%Y:%H:%M:%S +0000')}]"
        f' "{chance.choice(("GET", "POST"))} {chance.path()} HTTP/1.1" {chance.status()}'
        f" {chance.randrange(99999)}"
    )


def combined_line(chance) -> str:
    """Combined Log Format."""
    return f'{common_line(chance)} "-" "{chance.agent()}"'


@kind("nginx access", page=_NGINX_PAGE, url=_NGINX_URL, reader=lines, verdict=JOINED,
      ending=".log")  # fmt: skip
def _nginx(chance):
    return chance.unended(chance.rows(lambda: combined_line(chance)))


@kind("nginx access, health checks first", page=_NGINX_PAGE, url=_NGINX_URL, reader=lines,
      verdict=JOINED, ending="")  # fmt: skip
def _nginx_health(chance):
    check = '10.0.0.1 - - [02/Jan/2026:00:00:00 +0000] "GET /health HTTP/1.1" 200 2 "-" "probe"\n'
    return check * 2 + chance.rows(lambda: combined_line(chance), 0, 4)


@kind("nginx access, JSON", page=_NGINX_PAGE, url=_NGINX_URL, reader=json_lines, verdict=JOINED,
      ending=".log")  # fmt: skip
def _nginx_json(chance):
    return chance.rows(
        lambda: js(time_iso8601=chance.iso(), remote_addr=chance.ip(), status=str(chance.status()),
                   request=f"GET {chance.path()} HTTP/1.1", http_user_agent=chance.agent())
    )  # fmt: skip


@kind(
    "nginx error",
    page="Core functionality: error_log (nginx)",
    url="https://nginx.org/en/docs/ngx_core_module.html",
    reader=lines,
    verdict=JOINED,
    ending="error.log",
)
def _nginx_error(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%Y/%m/%d %H:%M:%S')} [error] {chance.randrange(9999)}#0: *1 open()"
            f' "/usr/share{chance.path()}" failed (2: No such file or directory), client: {chance.ip()},'
            f' server: localhost, request: "GET {chance.path()} HTTP/1.1", host: "example.com"'
        )
    )


@kind("Apache common", page=_APACHE_PAGE, url=_APACHE_URL, reader=lines, verdict=JOINED,
      ending="access_log")  # fmt: skip
def _apache_common(chance):
    return chance.rows(lambda: common_line(chance))


@kind("Apache combined, Latin-1 bytes", page=_APACHE_PAGE, url=_APACHE_URL, reader=lines,
      verdict=EITHER, ending="access_log")  # fmt: skip
def _apache_latin(chance):
    text = chance.rows(lambda: combined_line(chance).replace("HTTP", "é HTTP"))
    return text.encode("latin-1")


@kind("Apache with virtual hosts", page=_APACHE_PAGE, url=_APACHE_URL, reader=lines, verdict=JOINED,
      ending=".log")  # fmt: skip
def _apache_hosts(chance):
    return chance.rows(lambda: f"www.example.com:443 {combined_line(chance)}")


@kind("Apache error", page=_APACHE_PAGE, url=_APACHE_URL, reader=lines, verdict=JOINED,
      ending="error_log")  # fmt: skip
def _apache_error(chance):
    return chance.rows(
        lambda: (
            f"[{chance.at('%a %b %d %H:%M:%S.%f %Y')}] [core:error] [pid {chance.randrange(9999)}"
            f":tid 1] [client {chance.ip()}:51234] AH00128: File does not exist: /var{chance.path()}"
        )
    )


@kind(
    "IIS",
    page="W3C logging (IIS)",
    url="https://learn.microsoft.com/en-us/windows/win32/http/w3c-logging",
    reader=w3c,
    verdict=EITHER,
    ending="u_ex260102.log",
)
def _iis(chance):
    fields = "date time s-ip cs-method cs-uri-stem cs-uri-query s-port c-ip sc-status time-taken"
    head = (
        "#Software: Microsoft Internet Information Services 10.0\r\n#Version: 1.0\r\n"
        f"#Date: {chance.at('%Y-%m-%d %H:%M:%S')}\r\n#Fields: {fields}\r\n"
    )
    return head + chance.rows(
        lambda: (
            f"{chance.at('%Y-%m-%d %H:%M:%S')} 10.0.0.4 GET {chance.path()} - 443 {chance.ip()}"
            f" {chance.status()} {chance.randrange(999)}"
        ),
        end="\r\n",
    )


@kind("W3C, fields change within", page=_IIS_PAGE, url=_IIS_URL, reader=w3c, verdict=EITHER,
      ending=".log")  # fmt: skip
def _w3c_changes(chance):
    first = "#Version: 1.0\n#Fields: time cs-method cs-uri\n"
    second = "#Fields: time cs-uri sc-status\n"
    rows = chance.rows(lambda: f"{chance.at('%H:%M:%S')} GET {chance.path()}")
    return first + rows + second + chance.rows(lambda: f"{chance.at('%H:%M:%S')} /a 200")


@kind("W3C without a version", page=_IIS_PAGE, url=_IIS_URL, reader=w3c, verdict=EITHER,
      ending=".log")  # fmt: skip
def _w3c_bare(chance):
    names = "date time c-ip cs-uri" if chance.number % 2 else "date time cs-uri c-ip"
    return f"#Fields: {names}\n" + chance.rows(
        lambda: f"{chance.at('%Y-%m-%d %H:%M:%S')} {chance.ip()} {chance.path()}"
    )


@kind(
    "IIS log file format",
    page="IIS logging (Microsoft Learn)",
    url="https://learn.microsoft.com/en-us/windows/win32/http/iis-logging",
    reader=lines,
    verdict=EITHER,
    ending="in260102.log",
)
def _iis_native(chance):
    return chance.rows(
        lambda: (
            f"{chance.ip()}, -, 01/02/26, {chance.at('%H:%M:%S')}, W3SVC2, SERVER, 172.21.13.45,"
            f" 4502, 163, 3223, 200, 0, GET, {chance.path()}, -,"
        ),
        end="\r\n",
    )


@kind(
    "HTTPERR",
    page="Error logging in HTTP APIs",
    url="https://learn.microsoft.com/en-us/troubleshoot/developer/webapps/aspnet/site-behavior-performance/error-logging-http-apis",
    reader=w3c,
    verdict=EITHER,
    ending="httperr1.log",
)
def _http_errors(chance):
    head = (
        "#Software: Microsoft HTTP API 2.0\r\n#Version: 1.0\r\n#Date: 2026-01-02 00:00:00\r\n"
        "#Fields: date time c-ip c-port s-ip s-port cs-version cs-method cs-uri sc-status s-reason\r\n"
    )
    return head + chance.rows(
        lambda: f"{chance.at('%Y-%m-%d %H:%M:%S')} {chance.ip()} 2780 10.0.0.1 80 - - - - Timer",
        end="\r\n",
    )


@kind(
    "HAProxy HTTP",
    page="HAProxy Configuration Manual: HTTP log format",
    url="https://docs.haproxy.org/2.8/configuration.html",
    reader=lines,
    verdict=JOINED,
    ending="haproxy.log",
)
def _haproxy(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%b %e %H:%M:%S')} lb haproxy[14389]: {chance.ip()}:33317"
            f" [{chance.at('%d/%b/%Y:%H:%M:%S.%3')}] http-in static/srv1 10/0/30/69/109 200 2750 - - ----"
            f' 1/1/1/1/0 0/0 {{1wt.eu}} {{}} "GET {chance.path()} HTTP/1.1"'
        )
    )


@kind(
    "Squid",
    page="Squid log files: access.log native format",
    url="https://wiki.squid-cache.org/Features/LogFormat",
    reader=lines,
    verdict=JOINED,
    ending="access.log",
)
def _squid(chance):
    return chance.rows(
        lambda: (
            f"{chance.unix()}.{chance.randrange(999):03} {chance.randrange(9999):6} {chance.ip()}"
            f" TCP_MISS/200 {chance.randrange(9999)} GET http://example.com{chance.path()} -"
            " HIER_DIRECT/93.184.216.34 text/html"
        )
    )


@kind(
    "Envoy",
    page="Access logging: default format string (Envoy)",
    url="https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage",
    reader=lines,
    verdict=JOINED,
    ending=".log",
)
def _envoy(chance):
    return chance.rows(
        lambda: (
            f'[{chance.at("%Y-%m-%dT%H:%M:%S.%3Z")}] "GET {chance.path()} HTTP/2" 200 - 0 154 2 1'
            f' "{chance.ip()}" "{chance.agent()}" "{chance.id()}" "api.example" "10.0.0.7:8080"'
        )
    )


@kind(
    "Traefik, common",
    page="Logs & Access Logs (Traefik)",
    url="https://doc.traefik.io/traefik/observe/logs-and-access-logs/",
    reader=lines,
    verdict=JOINED,
    ending="access.log",
)
def _traefik(chance):
    return chance.rows(
        lambda: f'{combined_line(chance)} {chance.randrange(99)} "web@docker" "http://10.0.0.3" 3ms'
    )


@kind(
    "Caddy",
    page="How Logging Works (Caddy)",
    url="https://caddyserver.com/docs/logging",
    reader=json_lines,
    verdict=JOINED,
    ending="access.log",
)
def _caddy(chance):
    return chance.rows(
        lambda: js(level="info", ts=chance.unix() + 0.5, logger="http.log.access", msg="handled",
                   request={"uri": chance.path(), "headers": {"User-Agent": [chance.agent()]}})
    )  # fmt: skip


@kind(
    "Tomcat access",
    page="The Valve Component: Access Log Valve (Tomcat)",
    url="https://tomcat.apache.org/tomcat-10.1-doc/config/valve.html",
    reader=lines,
    verdict=JOINED,
    ending="localhost_access_log.2026-01-02.txt",
)
def _tomcat(chance):
    return chance.rows(lambda: common_line(chance), end="\r\n")


@kind(
    "Tomcat catalina.out",
    page="Logging in Tomcat: OneLineFormatter",
    url="https://tomcat.apache.org/tomcat-10.1-doc/logging.html",
    reader=entries(r"\d\d-[A-Z][a-z]{2}-\d{4} "),
    loose=lines,
    verdict=JOINED,
    ending="catalina.out",
)
def _catalina(chance):
    return chance.rows(
        lambda: (
            f"{chance.at('%d-%b-%Y %H:%M:%S.%3')} SEVERE [main] org.apache.{chance.word()} failed"
            f"\n\tjava.io.IOException: {chance.words()}\n\t\tat org.apache.A.b(A.java:1)"
        )
    )


@kind(
    "Varnish",
    page="varnishncsa",
    url="https://varnish-cache.org/docs/trunk/reference/varnishncsa.html",
    reader=lines,
    verdict=JOINED,
    ending="varnishncsa.log",
)
def _varnish(chance):
    return chance.rows(lambda: combined_line(chance).replace("GET /", "GET http://example.com/"))


@kind(
    "Fastly to S3",
    page="Log streaming: Amazon S3 (Fastly): classic line prefix",
    url="https://docs.fastly.com/en/guides/changing-log-line-formats",
    reader=lines,
    verdict=JOINED,
    ending="2026-01-02T00:05:00.000-3b0d.log",
)
def _fastly(chance):
    return chance.rows(
        lambda: f"<134>{chance.at('%Y-%m-%dT%H:%M:%SZ')} cache-fra1 s3[4711]: {common_line(chance)}"
    )


@kind(
    "Cloudflare Logpush",
    page="HTTP requests dataset (Cloudflare Logpush)",
    url="https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/",
    reader=json_lines,
    verdict=JOINED,
    ending="20260102T000500Z_20260102T000600Z_3b0d.log",
)
def _cloudflare(chance):
    return chance.rows(
        lambda: js(ClientIP=chance.ip(), ClientRequestURI=chance.path(), EdgeResponseStatus=200,
                   EdgeStartTimestamp=chance.unix() * 10**9, RayID=chance.hexes(16))
    )  # fmt: skip


@kind(
    "Akamai DataStream 2",
    page="DataStream 2: log format, structured",
    url="https://techdocs.akamai.com/datastream2/docs/data-set-parameters",
    reader=lines,
    verdict=EITHER,
    ending="ak-26-1-2-0-5.log",
)
def _akamai(chance):
    return chance.rows(
        lambda: (
            f"2 {chance.hexes(7)} 1 {chance.randrange(9999)} {chance.unix()}.12 {chance.ip()}"
            f" 200 HTTP/2 GET example.com {chance.path()[1:]} text/html - -"
        )
    )


@kind(
    "LTSV access",
    page="Labeled Tab-separated Values (LTSV)",
    url="http://ltsv.org/",
    reader=lines,
    verdict=EITHER,
    ending=".ltsv",
)
def _ltsv(chance):
    return chance.rows(
        lambda: (
            f"time:{chance.at('[%d/%b/%Y:%H:%M:%S +0000]')}\thost:{chance.ip()}"
            f"\treq:GET {chance.path()} HTTP/1.1\tstatus:{chance.status()}\tua:{chance.agent()}"
        )
    )


@kind(
    "HAR",
    page="HTTP Archive (HAR) format",
    url="https://w3c.github.io/web-performance/specs/HAR/Overview.html",
    reader=json_lines,
    verdict=EITHER,
    ending=".har",
)
def _har(chance):
    entries = [{"request": {"method": "GET", "url": chance.path()}, "time": 1} for _ in range(2)]
    return js(log={"version": "1.2", "creator": {"name": "b"}, "entries": entries})
