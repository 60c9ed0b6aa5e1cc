from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from pathlib import Path

import pytest

from compactor.errors import InvalidInput, TransientStoreError
from compactor_dev.benchmark import command
from compactor_dev.benchmark.clients import CLIENTS, named
from compactor_dev.benchmark.datasets import SETS
from compactor_dev.benchmark.front import Lane, render
from compactor_dev.benchmark.load import Ceiling, parse
from compactor_dev.benchmark.measure import measure
from compactor_dev.benchmark.session import Wanted, in_turn
from compactor_dev.benchmark.task import Task
from compactor_dev.benchmark.tools import Tools, packages_of
from compactor_dev.benchmark.worker import event_for

TOOLS = Tools(Path("/"), Path("nginx"), (Path("lua.so"),), Path("wrk"), Path("s5 cmd"), None)
TASK = Task(
    endpoint_url="http://127.0.0.1:1",
    source_bucket="sources",
    source_prefix="set/all/",
    bucket="outputs",
    prefix="worker/",
    extension=".json",
    scratch="/scratch",
    settings={"min_objects": 7},
    answer="/answer",
)
WRK = """Running 4s test @ http://127.0.0.1:1
  1 threads and 256 connections
  33987 requests in 4.00s, 157.40MB read
Requests/sec:   8496.94
Transfer/sec:     39.35MB
"""


def configured(*lanes: Lane) -> str:
    ports = {lane: 9_000 + number for number, lane in enumerate(lanes)}
    return render(TOOLS, Path("/x"), "127.0.0.1:5000", ports, ("sources",))


def test_a_lane_without_latency_waits_for_nothing() -> None:
    assert "ngx.sleep" not in configured(Lane(0.0))


def test_latency_is_given_to_nginx_in_seconds() -> None:
    assert "ngx.sleep(0.025)" in configured(Lane(25.0))


def test_only_the_lane_with_faults_fails() -> None:
    assert "SlowDown" not in configured(Lane(0.0), Lane(25.0))
    text = configured(Lane(0.0), Lane(25.0, faults=True))
    assert text.count("SlowDown") == 1
    assert text.index("listen 127.0.0.1:9001") < text.index("SlowDown")


def test_every_lane_listens_on_the_loopback_interface_alone() -> None:
    text = configured(Lane(0.0), Lane(25.0), Lane(25.0, faults=True))
    listening = [line for line in text.splitlines() if "listen " in line]
    assert len(listening) == 3
    assert all("127.0.0.1:" in line for line in listening)


def test_only_the_bucket_of_the_sources_is_cached() -> None:
    blocks = configured(Lane(0.0)).split("location ")[1:]
    cached = [block.split(" {")[0] for block in blocks if "proxy_cache " in block]
    assert cached == ["/sources/", "= /sources"]


def test_only_the_lane_over_tls_has_a_certificate() -> None:
    text = configured(Lane(25.0), Lane(25.0, tls=True))
    assert text.count("ssl_certificate ") == text.count("ssl_certificate_key ") == 1
    assert "listen 127.0.0.1:9000 backlog" in text
    assert "listen 127.0.0.1:9001 ssl " in text
    assert text.index("listen 127.0.0.1:9001") < text.index("ssl_certificate /x/tls.pem;")
    assert Lane(25.0, tls=True).name == "25 ms, TLS"


def test_the_configuration_s_braces_are_balanced() -> None:
    text = configured(Lane(0.0), Lane(25.0, faults=True), Lane(25.0, tls=True))
    assert text.count("{") == text.count("}")


def test_the_packages_to_fetch_are_read_from_what_apt_lists() -> None:
    listed = (
        "Reading package lists...\n"
        "'http://host/n/nginx_1.22.1-9%2bdeb12u10_amd64.deb' nginx_1.22.1-9+deb12u10_amd64.deb 5 \n"
        "'http://host/l/libluajit2-5.1-2_2.1_amd64.deb' libluajit2-5.1-2_2.1_amd64.deb 7 SHA:a\n"
    )
    assert packages_of(listed) == ["nginx", "libluajit2-5.1-2"]


def test_the_load_generator_s_report_is_read() -> None:
    assert parse(WRK) == Ceiling(8_496.94, 39.35 * 1024**2)


@pytest.mark.parametrize("said", ["", "unable to connect", WRK + "Non-2xx or 3xx responses: 3\n"])
def test_a_ceiling_made_of_errors_is_none(said: str) -> None:
    with pytest.raises(TransientStoreError, match="wrk"):
        parse(said)


def test_a_task_survives_being_an_argument() -> None:
    assert Task.from_json(TASK.to_json()) == TASK


def test_the_worker_s_settings_reach_its_event() -> None:
    event = event_for(TASK)
    assert event["settings"] == {
        "s3_source_uri": "s3://sources/set/all/",
        "s3_destination_uri": "s3://outputs/worker/",
        "min_objects": 7,
    }
    assert event["partition"]["prefix"] == "set/all/"


def test_a_shell_command_quotes_what_the_shell_would_read() -> None:
    script = CLIENTS["s5cmd"].command(TASK, TOOLS)[2]
    words = shlex.split(script)
    assert words.count("s5 cmd") == 2
    assert "s3://sources/set/all/*" in words
    assert "'s3://sources/set/all/*'" in script


def test_a_client_whose_program_is_missing_is_not_available() -> None:
    assert CLIENTS["s5cmd"].available(TOOLS)
    assert not CLIENTS["aws"].available(TOOLS)
    assert CLIENTS["worker"].available(TOOLS)


def test_an_unknown_client_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"--clients: 'rclone'"):
        named("worker,rclone")


def lanes_of(wanted: Wanted, name: str) -> dict[str, list[str]]:
    found = wanted.clients_by_lane(SETS[name])
    return {lane.name: [one.name for one in clients] for lane, clients in found.items()}


def test_clients_go_through_every_lane_and_faults_are_for_those_that_retry() -> None:
    clients = named("worker,seed")
    wanted = Wanted(clients, [Lane(0.0), Lane(25.0)], rounds=2, faults=True)
    assert lanes_of(wanted, "json-4k") == {
        "0 ms": ["worker", "seed"],
        "25 ms": ["worker", "seed"],
        "25 ms, faults": ["worker"],
    }
    assert wanted.steps(SETS["json-4k"]) == 2 + 2 * 5


def test_tls_is_for_the_worker_and_the_loop_on_the_sets_that_are_named() -> None:
    wanted = Wanted(tuple(CLIENTS.values()), [Lane(25.0)], rounds=1, tls=["json-4k-gzip"])
    assert lanes_of(wanted, "json-4k-gzip")["25 ms, TLS"] == [
        "worker",
        "obstore",
        "obstore-proving",
    ]
    assert "25 ms, TLS" not in lanes_of(wanted, "json-4k")
    nobody = Wanted(named("aws"), [Lane(25.0)], rounds=1, tls=["json-4k"])
    assert lanes_of(nobody, "json-4k") == {"25 ms": ["aws"]}


@pytest.mark.parametrize(
    ("options", "over_tls"),
    [
        ([], ["json-4k", "json-100k"]),
        (["--tls"], list(SETS)),
        (["--quick"], []),
        (["--settings", '{"min_objects":1}'], []),
        (["--quick", "--tls"], list(SETS)),
    ],
)
def test_what_the_page_shows_has_two_sets_over_tls_and_the_option_has_all(
    options: list[str], over_tls: list[str]
) -> None:
    wanted = command.wanted_of(command.parser().parse_args(options), tuple(SETS.values()))
    assert [name for name in SETS if any("TLS" in lane for lane in lanes_of(wanted, name))] == (
        over_tls
    )


def test_two_clients_are_first_equally_often_in_any_even_number_of_rounds() -> None:
    order = ["".join(in_turn(named("worker,seed"), number)[0].name[0]) for number in range(1, 9)]
    assert order == ["w", "s", "s", "w", "w", "s", "s", "w"]


def test_every_client_is_in_every_place_equally_often() -> None:
    clients = named("worker,seed,obstore,boto3")
    orders = [[one.name for one in in_turn(clients, number)] for number in range(1, 9)]
    assert orders[1] == orders[0][::-1]
    places = Counter(pair for order in orders for pair in enumerate(order))
    assert set(places.values()) == {2}
    assert len(places) == 16
    assert all(sorted(order) == sorted(orders[0]) for order in orders)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--sets", "x"], "--sets"),
        (["--latency-ms", "fast"], "--latency-ms"),
        (["--latency-ms", "-1"], "--latency-ms"),
        (["--rounds", "0"], "--rounds"),
        (["--settings", "[]"], "--settings"),
        (["--clients", "x"], "--clients"),
    ],
)
def test_a_mistaken_option_ends_in_one_line_before_anything_is_fetched(
    options: list[str], field: str, capsys: pytest.CaptureFixture
) -> None:
    assert command.main(options) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"bench: {field}: ")


def test_cpu_time_and_memory_are_those_of_the_process_and_its_children(tmp_path: Path) -> None:
    # Half a second of work and 64 MB, in a child of the command.
    code = (
        "import time\nheld = bytearray(64_000_000)\n"
        "while time.process_time() < 0.5: pass\ntime.sleep(0.2)"
    )
    command_line = ["/bin/sh", "-c", f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}; true"]
    taken = measure(command_line, os.environ, tmp_path / "log", 60)
    assert taken.seconds > 0.7
    assert 0.5 <= taken.user_seconds + taken.kernel_seconds < 5
    assert 64_000_000 < taken.peak_bytes < 200_000_000


@pytest.mark.parametrize(
    ("work", "greater"), [("sum(range(20_000))", "user"), ("os.urandom(1 << 20)", "kernel")]
)
def test_cpu_time_in_user_space_and_in_the_kernel_are_told_apart(
    tmp_path: Path, work: str, greater: str
) -> None:
    code = f"import os, time\nwhile time.process_time() < 0.5: {work}"
    taken = measure([sys.executable, "-S", "-c", code], os.environ, tmp_path / "log", 60)
    both = {"user": taken.user_seconds, "kernel": taken.kernel_seconds}
    assert max(both, key=both.__getitem__) == greater


def test_a_client_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(TransientStoreError, match="sh failed: no such bucket"):
        measure(["/bin/sh", "-c", "echo no such bucket; exit 3"], {}, tmp_path / "log", 60)


def test_a_client_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(TransientStoreError, match="failed"):
        measure(["/bin/sh", "-c", "sleep 60 | sleep 60"], {}, tmp_path / "log", 0.2)
