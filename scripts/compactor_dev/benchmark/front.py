"""nginx before the embedded S3: reads from a cache, latency to the first byte, faults.

The embedded S3 alone answers about a thousand GETs a second, which would measure it and not
its clients. What a client stores goes through to it, with the same latency.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compactor.errors import TransientStoreError
from compactor_dev.benchmark import certificate
from compactor_dev.benchmark.tools import Tools
from compactor_dev.ports import free_ports

WITH_FAULTS, OVER_TLS = ", faults", ", TLS"
FAULT_SHARE, LATE_SHARE, LATE_SECONDS = 0.01, 0.005, 0.5
_SLOW_DOWN = (
    "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)
_FAULTS = f"""
      local draw = math.random()
      if draw < {FAULT_SHARE} then
        ngx.req.discard_body()
        ngx.status = 503
        ngx.header["Content-Type"] = "application/xml"
        ngx.print("{_SLOW_DOWN}")
        return ngx.exit(ngx.HTTP_OK)
      end
      if draw < {FAULT_SHARE + LATE_SHARE} then ngx.sleep({LATE_SECONDS}) end
   """
ACCESS_LOG = "access.log"
#: One request a line: when it ended (UNIX seconds), how long it took (seconds), method, path,
#: query, status, bytes of the answer's body.
LOG_FORMAT = "$msec\\t$request_time\\t$request_method\\t$uri\\t$args\\t$status\\t$body_bytes_sent"
_START_SECONDS = 10.0
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Lane:
    """One way to the server.

    Attributes:
        latency_ms: from a request to the first byte of its answer, on top of the server's own.
        faults: 1 % of the requests get a 503, and 0.5 % are half a second late.
        tls: over TLS, by a certificate made for this front.
    """

    latency_ms: float
    faults: bool = False
    tls: bool = False

    @property
    def name(self) -> str:
        """How results call it."""
        over = OVER_TLS if self.tls else ""
        return f"{self.latency_ms:g} ms{over}" + (WITH_FAULTS if self.faults else "")


@dataclass(frozen=True, slots=True)
class Front:
    """A running nginx.

    Attributes:
        endpoints: one URL a lane.
        log: where requests are told, if they are.
        trust: variables by which clients trust its lanes over TLS; none without such lanes.
    """

    endpoints: Mapping[Lane, str]
    log: Path
    trust: Mapping[str, str] = field(default_factory=dict)


def render(
    tools: Tools,
    directory: Path,
    upstream: str,
    ports: Mapping[Lane, int],
    buckets: Sequence[str],
    *,
    logged: bool = False,
) -> str:
    """The whole configuration.

    Args:
        tools: where nginx's modules are.
        directory: for the cache, temporary data, the log and the process id; has the certificate
            already where a lane needs one.
        upstream: host and port of the S3 behind it.
        ports: where each lane listens, on the loopback interface.
        buckets: those whose GETs are cached, because nobody writes to them.
        logged: each request is told in ``access.log``, in the form of :data:`LOG_FORMAT`.
    """
    # A worker that root starts would become nobody, who cannot read build/.
    user = "user root;\n" if os.geteuid() == 0 else ""
    modules = "".join(f"load_module {module};\n" for module in tools.modules)
    paths = "".join(
        f"  {name}_temp_path {directory}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    servers = "".join(
        _server(lane, _listen(lane, port, directory), buckets) for lane, port in ports.items()
    )
    return f"""{user}{modules}daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/error.log error;
events {{ worker_connections 8192; }}
http {{
  lua_package_path "{tools.lua_path}";
{_log(directory) if logged else "  access_log off;"}
{paths}  keepalive_timeout 300s;
  keepalive_requests 1000000000;
  tcp_nopush off;
  tcp_nodelay on;
  merge_slashes off;
  client_max_body_size 0;
  client_body_buffer_size 1m;
  proxy_cache_path {directory}/cache levels=2:2 keys_zone=sources:64m inactive=7d
    max_size=16g use_temp_path=off;
  init_worker_by_lua_block {{ math.randomseed(1) }}
  upstream embedded {{ server {upstream}; keepalive 64; }}
{servers}}}
"""


def _log(directory: Path) -> str:
    return f"""  log_format requests '{LOG_FORMAT}';
  access_log {directory}/{ACCESS_LOG} requests;"""


def _listen(lane: Lane, port: int, directory: Path) -> str:
    if not lane.tls:
        return f"    listen 127.0.0.1:{port} backlog=4096;"
    files = certificate.files(directory)
    return f"""    listen 127.0.0.1:{port} ssl backlog=4096;
    ssl_certificate {files.chain};
    ssl_certificate_key {files.key};"""


def _server(lane: Lane, listen: str, buckets: Sequence[str]) -> str:
    access = _access(lane)
    cached = "".join(_cached(bucket) for bucket in buckets)
    return f"""  server {{
{listen}
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $http_host;
    proxy_read_timeout 300s;
{access}{cached}    location / {{
      proxy_pass http://embedded;
      proxy_request_buffering off;
      proxy_buffering off;
    }}
  }}
"""


def _cached(bucket: str) -> str:
    return f"""    location /{bucket}/ {{
      proxy_pass http://embedded;
      proxy_cache sources;
      proxy_cache_key $uri$is_args$args;
      proxy_cache_valid 200 7d;
      proxy_cache_lock on;
      proxy_force_ranges on;
    }}
    location = /{bucket} {{
      proxy_pass http://embedded;
      proxy_cache sources;
      proxy_cache_key $uri$is_args$args;
      proxy_cache_valid 200 7d;
    }}
"""


def _access(lane: Lane) -> str:
    code = f"ngx.sleep({lane.latency_ms / 1000:g})" if lane.latency_ms else ""
    if lane.faults:
        code += _FAULTS
    return f"    access_by_lua_block {{ {code} }}\n" if code else ""


@contextlib.contextmanager
def front(
    tools: Tools,
    directory: Path,
    upstream: str,
    lanes: Sequence[Lane],
    buckets: Sequence[str],
    *,
    logged: bool = False,
) -> Iterator[Front]:
    """Run nginx for the length of the block, with an empty cache; see :func:`render`.

    Raises:
        TransientStoreError: it did not start.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    ports = dict(zip(lanes, free_ports(len(lanes)), strict=True))
    trust = certificate.make(directory).trust if any(lane.tls for lane in lanes) else {}
    configuration = directory / "nginx.conf"
    text = render(tools, directory, upstream, ports, buckets, logged=logged)
    configuration.write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [str(tools.nginx), "-c", str(configuration), "-p", str(directory)],
        env=tools.environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # A terminal's interrupt must reach the clients first.
        start_new_session=True,
    )
    try:
        _await(process, ports)
        endpoints = {
            lane: f"{'https' if lane.tls else 'http'}://127.0.0.1:{port}"
            for lane, port in ports.items()
        }
        yield Front(endpoints, directory / ACCESS_LOG, trust)
    finally:
        _end(process)
        shutil.rmtree(directory / "cache", ignore_errors=True)


def _await(process: subprocess.Popen[bytes], ports: Mapping[Lane, int]) -> None:
    end = time.monotonic() + _START_SECONDS
    for port in ports.values():
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None or time.monotonic() > end:
                raise TransientStoreError(f"nginx did not start: {_complaint(process)}")
            time.sleep(0.05)


def _complaint(process: subprocess.Popen[bytes]) -> str:
    process.kill()
    said = process.communicate()[1]
    return " ".join(said.decode("utf-8", "replace").split())[-300:]


def _end(process: subprocess.Popen[bytes]) -> None:
    # The master ends its workers when it is asked to, and would leave them when killed.
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
