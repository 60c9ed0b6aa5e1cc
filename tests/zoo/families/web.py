"""Access and error logs of web servers and proxies."""

from __future__ import annotations

from tests.zoo.kinds import TEXT, Kind, js, rows
from tests.zoo.readers import entries, json_lines, lines, w3c

_APACHE_URL = "https://httpd.apache.org/docs/2.4/logs.html"
_NGINX_URL = "https://nginx.org/en/docs/http/ngx_http_log_module.html"
_IIS_URL = "https://www.w3.org/TR/WD-logfile.html"


def common_line(c) -> str:
    """Common Log Format."""
    return (
        f"{c.ip()} - {c.choice(('-', 'frank'))} [{c.at('%d/%b/%Y:%H:%M:%S +0000')}]"
        f' "{c.choice(("GET", "POST"))} {c.path()} HTTP/1.1" {c.status()}'
        f" {c.randrange(99999)}"
    )


def combined_line(c) -> str:
    """Combined Log Format."""
    return f'{common_line(c)} "-" "{c.agent()}"'


def _nginx_health(c):
    check = '10.0.0.1 - - [02/Jan/2026:00:00:00 +0000] "GET /health HTTP/1.1" 200 2 "-" "probe"\n'
    return check * 2 + c.rows(lambda: combined_line(c), 0, 4)


def _iis(c):
    fields = "date time s-ip cs-method cs-uri-stem cs-uri-query s-port c-ip sc-status time-taken"
    head = (
        "#Software: Microsoft Internet Information Services 10.0\r\n#Version: 1.0\r\n"
        f"#Date: {c.at('%Y-%m-%d %H:%M:%S')}\r\n#Fields: {fields}\r\n"
    )
    return head + c.rows(
        lambda: (
            f"{c.at('%Y-%m-%d %H:%M:%S')} 10.0.0.4 GET {c.path()} - 443 {c.ip()}"
            f" {c.status()} {c.randrange(999)}"
        ),
        end="\r\n",
    )


def _w3c_changes(c):
    first = "#Version: 1.0\n#Fields: time cs-method cs-uri\n"
    second = "#Fields: time cs-uri sc-status\n"
    rows = c.rows(lambda: f"{c.at('%H:%M:%S')} GET {c.path()}")
    return first + rows + second + c.rows(lambda: f"{c.at('%H:%M:%S')} /a 200")


def _w3c_bare(c):
    names = "date time c-ip cs-uri" if c.number % 2 else "date time cs-uri c-ip"
    return f"#Fields: {names}\n" + c.rows(
        lambda: f"{c.at('%Y-%m-%d %H:%M:%S')} {c.ip()} {c.path()}"
    )


def _http_errors(c):
    head = (
        "#Software: Microsoft HTTP API 2.0\r\n#Version: 1.0\r\n#Date: 2026-01-02 00:00:00\r\n"
        "#Fields: date time c-ip c-port s-ip s-port cs-version cs-method cs-uri sc-status s-reason\r\n"
    )
    return head + c.rows(
        lambda: f"{c.at('%Y-%m-%d %H:%M:%S')} {c.ip()} 2780 10.0.0.1 80 - - - - Timer",
        end="\r\n",
    )


def _har(c):
    entries = [{"request": {"method": "GET", "url": c.path()}, "time": 1} for _ in range(2)]
    return js(log={"version": "1.2", "creator": {"name": "b"}, "entries": entries})


# fmt: off
KINDS = (
    Kind("nginx access", ".log", lines, _NGINX_URL,
         lambda c: c.unended(c.rows(lambda: combined_line(c)))),
    Kind("nginx access, health checks first", "", lines, _NGINX_URL, _nginx_health),
    Kind("nginx access, JSON", ".log", json_lines, _NGINX_URL,
         rows(lambda c: js(time_iso8601=c.iso(), remote_addr=c.ip(), status=str(c.status()),
            request=f"GET {c.path()} HTTP/1.1", http_user_agent=c.agent()))),
    Kind("nginx error", "error.log", lines, "https://nginx.org/en/docs/ngx_core_module.html",
         rows(lambda c: f"{c.at('%Y/%m/%d %H:%M:%S')} [error] {c.randrange(9999)}#0: *1 open()"
         f' "/usr/share{c.path()}" failed (2: No such file or directory), client: {c.ip()},'
         f' server: localhost, request: "GET {c.path()} HTTP/1.1", host: "example.com"')),
    Kind("Apache common", "access_log", lines, _APACHE_URL, rows(common_line)),
    Kind("Apache with virtual hosts", ".log", lines, _APACHE_URL,
         rows(lambda c: f"www.example.com:443 {combined_line(c)}")),
    Kind("Apache error", "error_log", lines, _APACHE_URL,
         rows(lambda c: f"[{c.at('%a %b %d %H:%M:%S.%f %Y')}] [core:error] [pid {c.randrange(9999)}"
         f":tid 1] [client {c.ip()}:51234] AH00128: File does not exist: /var{c.path()}")),
    Kind("IIS", "u_ex260102.log", w3c,
         "https://learn.microsoft.com/en-us/windows/win32/http/w3c-logging", _iis, loose=lines),
    Kind("W3C, fields change within", ".log", w3c, _IIS_URL, _w3c_changes,
         expected="unknown_format", loose=lines),
    Kind("W3C without a version", ".log", w3c, _IIS_URL, _w3c_bare, loose=lines),
    Kind("IIS log file format", "in260102.log", lines,
         "https://learn.microsoft.com/en-us/windows/win32/http/iis-logging", lambda c: c.rows(
         lambda: (f"{c.ip()}, -, 01/02/26, {c.at('%H:%M:%S')}, W3SVC2, SERVER, 172.21.13.45,"
          f" 4502, 163, 3223, 200, 0, GET, {c.path()}, -,"), end="\r\n")),
    Kind("HTTPERR", "httperr1.log", w3c,
         "https://learn.microsoft.com/en-us/troubleshoot/developer/webapps/aspnet/site-behavior-performance/error-logging-http-apis",
         _http_errors, loose=lines),
    Kind("HAProxy HTTP", "haproxy.log", lines, "https://docs.haproxy.org/2.8/configuration.html",
         rows(lambda c: f"{c.at('%b %e %H:%M:%S')} lb haproxy[14389]: {c.ip()}:33317"
         f" [{c.at('%d/%b/%Y:%H:%M:%S.%3')}] http-in static/srv1 10/0/30/69/109 200 2750 - - ----"
         f' 1/1/1/1/0 0/0 {{1wt.eu}} {{}} "GET {c.path()} HTTP/1.1"')),
    Kind("Squid", "access.log", lines, "https://wiki.squid-cache.org/Features/LogFormat",
         rows(lambda c: f"{c.unix()}.{c.randrange(999):03} {c.randrange(9999):6} {c.ip()}"
         f" TCP_MISS/200 {c.randrange(9999)} GET http://example.com{c.path()} -"
         " HIER_DIRECT/93.184.216.34 text/html")),
    Kind("Envoy", ".log", lines,
         "https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage",
         rows(lambda c: f'[{c.at("%Y-%m-%dT%H:%M:%S.%3Z")}] "GET {c.path()} HTTP/2" 200 - 0 154 2 1'
         f' "{c.ip()}" "{c.agent()}" "{c.id()}" "api.example" "10.0.0.7:8080"')),
    Kind("Traefik, common", "access.log", lines,
         "https://doc.traefik.io/traefik/observe/logs-and-access-logs/",
         rows(lambda c: f'{combined_line(c)} {c.randrange(99)} "web@docker" "http://10.0.0.3" 3ms')),
    Kind("Caddy", "access.log", json_lines, "https://caddyserver.com/docs/logging",
         rows(lambda c: js(level="info", ts=c.unix() + 0.5, logger="http.log.access", msg="handled",
            request={"uri": c.path(), "headers": {"User-Agent": [c.agent()]}}))),
    Kind("Tomcat access", "localhost_access_log.2026-01-02.txt", lines,
         "https://tomcat.apache.org/tomcat-10.1-doc/config/valve.html",
         lambda c: c.rows(lambda: common_line(c), end="\r\n")),
    Kind("Tomcat catalina.out", "catalina.out", entries(r"\d\d-[A-Z][a-z]{2}-\d{4} "),
         "https://tomcat.apache.org/tomcat-10.1-doc/logging.html",
         rows(lambda c: f"{c.at('%d-%b-%Y %H:%M:%S.%3')} SEVERE [main] org.apache.{c.word()} failed"
         f"\n\tjava.io.IOException: {c.words()}\n\t\tat org.apache.A.b(A.java:1)"), loose=lines),
    Kind("Varnish", "varnishncsa.log", lines,
         "https://varnish-cache.org/docs/trunk/reference/varnishncsa.html",
         rows(lambda c: combined_line(c).replace("GET /", "GET http://example.com/"))),
    Kind("Fastly to S3", "2026-01-02T00:05:00.000-3b0d.log", lines,
         "https://docs.fastly.com/en/guides/changing-log-line-formats",
         rows(lambda c: f"<134>{c.at('%Y-%m-%dT%H:%M:%SZ')} cache-fra1 s3[4711]: {common_line(c)}")),
    Kind("Cloudflare Logpush", "20260102T000500Z_20260102T000600Z_3b0d.log", json_lines,
         "https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/",
         rows(lambda c: js(ClientIP=c.ip(), ClientRequestURI=c.path(), EdgeResponseStatus=200,
            EdgeStartTimestamp=c.unix() * 10**9, RayID=c.hexes(16)))),
    Kind("Akamai DataStream 2", "ak-26-1-2-0-5.log", lines,
         "https://techdocs.akamai.com/datastream2/docs/data-set-parameters",
         rows(lambda c: f"2 {c.hexes(7)} 1 {c.randrange(9999)} {c.unix()}.12 {c.ip()}"
         f" 200 HTTP/2 GET example.com {c.path()[1:]} text/html - -")),
    Kind("LTSV access", ".ltsv", lines, "http://ltsv.org/",
         rows(lambda c: f"time:{c.at('[%d/%b/%Y:%H:%M:%S +0000]')}\thost:{c.ip()}"
         f"\treq:GET {c.path()} HTTP/1.1\tstatus:{c.status()}\tua:{c.agent()}"), declared=TEXT),
    Kind("HAR", ".har", json_lines, "https://w3c.github.io/web-performance/specs/HAR/Overview.html",
         _har),
)
# fmt: on
