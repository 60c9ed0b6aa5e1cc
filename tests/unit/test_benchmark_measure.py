from __future__ import annotations

import json
import os
import platform
import resource
import shlex
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from compactor_cli.local.child import python_environment
from compactor_dev import IMPORT_ROOTS
from compactor_dev.benchmark import certificate, measure
from compactor_dev.benchmark.instructions import Event, counted, opened
from compactor_dev.benchmark.others import Look

# PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK: nanoseconds of CPU, which any machine counts.
TASK_CLOCK = Event(1, 1)
BURN = "import time\nwhile time.process_time() < 0.4: pass"


def counter_of(count: int, enabled: int, running: int) -> int:
    """A file descriptor that reads as the kernel's counter does."""
    reading, writing = os.pipe()
    os.write(writing, struct.pack("=QQQ", count, enabled, running))
    os.close(writing)
    return reading


def test_a_counter_is_read_at_the_end_and_closed() -> None:
    descriptor = counter_of(7_000, 100, 100)
    with counted(lambda: descriptor) as told:
        assert told() == 7_000
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.close(descriptor)


def test_a_counter_that_had_half_of_the_time_counted_half() -> None:
    with counted(lambda: counter_of(7_000, 100, 50)) as told:
        assert told() == 14_000


def test_a_counter_that_never_ran_tells_nothing() -> None:
    with counted(lambda: counter_of(0, 100, 0)) as told:
        assert told() is None


def test_without_a_counter_a_client_is_measured_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "counted", lambda: counted(lambda: None))
    taken = measure.measure(["/bin/sh", "-c", "true"], {}, tmp_path / "log", 60)
    assert taken.instructions is None
    assert taken.seconds > 0


def test_what_a_counter_tells_is_kept_with_the_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "counted", lambda: counted(lambda: counter_of(7_000, 9, 9)))
    taken = measure.measure(["/bin/sh", "-c", "true"], {}, tmp_path / "log", 60)
    assert taken.instructions == 7_000


def test_an_event_that_the_kernel_does_not_know_opens_no_counter() -> None:
    assert opened(Event(0xFFFF, 1)) is None


def test_on_an_unknown_architecture_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    assert opened(TASK_CLOCK) is None


def test_programs_and_their_children_are_counted_and_this_process_is_not() -> None:
    descriptor = opened(TASK_CLOCK)
    if descriptor is None:
        pytest.skip("this process may not ask the kernel for counters")
    with counted(lambda: descriptor) as told:
        ends = time.process_time() + 0.3
        while time.process_time() < ends:
            pass
        assert not told()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        script = f"{shlex.quote(sys.executable)} -S -c {shlex.quote(BURN)}; true"
        subprocess.run(["/bin/sh", "-c", script], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        nanoseconds = told()
    theirs = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert nanoseconds is not None
    assert 0.4e9 <= nanoseconds < (theirs + 0.2) * 1e9


def machine(proc: Path, processors: str, *processes: tuple[int, int, int]) -> Path:
    """A /proc with these times of all processors, and (id, parent, ticks) of some processes."""
    (proc / "cpuinfo").parent.mkdir(parents=True, exist_ok=True)
    text = f"cpu  {processors}\ncpu0 1 2 3 4\ncpu1 1 2 3 4\nintr 5\n"
    (proc / "stat").write_text(text, encoding="ascii")
    for pid, parent, ticks in processes:
        (proc / str(pid)).mkdir(exist_ok=True)
        # A name may hold blanks and brackets; times are own and of children, user and kernel.
        before = f"{pid} (a ) b) S {parent} " + "0 " * 9
        line = f"{before}{ticks} 1 2 3 " + "0 " * 30
        (proc / str(pid) / "stat").write_text(line, encoding="ascii")
    return proc


def test_others_are_all_that_the_processors_did_less_what_we_and_ours_did(tmp_path: Path) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    us = ((10, 1, 0), (11, 10, 0), (12, 11, 0))
    before = Look.now(machine(tmp_path, "100 0 100 900 0 0 0 0 0 0", *us, (20, 1, 0)), 10)
    # Five processor seconds more: three are ours, our child's and our grandchild's.
    more = ((10, 1, ticks), (11, 10, ticks), (12, 11, ticks), (20, 1, 9 * ticks))
    used = f"{100 + 3 * ticks} {ticks} 100 900 0 77 {7 * ticks} {ticks} 0 0"
    after = Look.now(machine(tmp_path, used, *more), 10)
    assert after.processors == 2
    assert after.used - before.used == pytest.approx(5.0)
    assert after.own - before.own == pytest.approx(3.0)
    ten_seconds = Look(before.at + 10.0, after.used, after.own, after.processors)
    assert before.others_until(ten_seconds) == pytest.approx(2.0 / 20.0)


def test_clocks_that_differ_by_a_tick_are_nobody_s_work() -> None:
    assert Look(0.0, 5.0, 5.0, 2).others_until(Look(1.0, 5.9, 6.0, 2)) == 0.0


# A process that has nothing else to do: by ticks, and of what was read a tick apart.
_LOOKS = f"""
import json, subprocess, sys, time
from pathlib import Path
from compactor_dev.benchmark.others import Look

before = Look.now()
subprocess.run([sys.executable, "-S", "-c", {BURN!r}], check=True)
between = Look.now()
# Whose parent ends at once has another parent than us.
command = ["/bin/sh", "-c", '"$0" -S -c "$1" & echo $!', sys.executable, {BURN!r}]
told = subprocess.run(command, check=True, stdout=subprocess.PIPE)
while Path("/proc", told.stdout.decode().strip()).exists():
    time.sleep(0.05)
after = Look.now()
others = between.others_until(after) * (after.at - between.at) * after.processors
print(json.dumps([between.own - before.own, after.own - between.own, others]))
"""


def test_a_client_is_not_one_of_the_others_and_a_stranger_is() -> None:
    command = [sys.executable, "-c", _LOOKS]
    environment = python_environment(os.environ, *IMPORT_ROOTS)
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    of_client, besides, of_others = json.loads(done.stdout)
    assert of_client > 0.3
    assert besides < 0.3 < of_others


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        for name, value in (
            ("Content-Length", "5"),
            ("ETag", '"abc"'),
            ("Last-Modified", "Mon, 05 Jan 2026 08:13:00 GMT"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def front(tmp_path: Path) -> Iterator[tuple[str, certificate.Certificate]]:
    """A server with a certificate of the benchmark's, and the files of that."""
    made = certificate.make(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.chain, made.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # it would print
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"https://127.0.0.1:{server.server_port}", made
    finally:
        server.shutdown()
        server.server_close()


# The clients that the worker reads with: its own, and boto3's.
READ = """
import sys, boto3
from compactor.model import SourceObject
from compactor.stores.retries import Patience
from compactor.stores.s3 import S3Store, make_client
store = S3Store(make_client(sys.argv[1]), patience=Patience(0.5))
client = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1")
source = SourceObject(bucket="b", key="k", size=5, etag="abc", last_modified=0)
for read in (
    lambda: next(store.read_sources([source])).content,
    lambda: client.get_object(Bucket="b", Key="k")["Body"].read(),
):
    try:
        print(read())
    except Exception as error:
        print(type(error).__name__)
"""


def read(url: str, more: dict[str, str]) -> list[str]:
    base = {**os.environ, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    told = subprocess.run(
        [sys.executable, "-c", READ, url],
        env={**base, "NO_PROXY": "127.0.0.1", "AWS_MAX_ATTEMPTS": "1", **more},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return told.stdout.splitlines()


def test_the_worker_trusts_the_front_by_its_environment_and_not_without(
    front: tuple[str, certificate.Certificate],
) -> None:
    url, made = front
    assert read(url, dict(made.trust)) == ["b'hello'", "b'hello'"]
    assert read(url, {}) == ["InvalidInput", "SSLError"]


def test_the_front_s_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    assert certificate.make(tmp_path).key.stat().st_mode & 0o777 == 0o600
