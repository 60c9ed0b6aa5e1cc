"""What a probe finds of a server is what the other cases of this contract find."""

from __future__ import annotations

import pytest

from compactor.ports import Deletes
from compactor.probe.probe import traits_for
from compactor.settings.uris import S3Uri
from tests.contract.benches import Bench
from tests.support.server_differences import SERVERS, Condition, strict

NOW = 1_700_000_000.0


def test_a_probe_finds_what_this_contract_finds(
    bench: Bench, request: pytest.FixtureRequest
) -> None:
    server = request.node.callspec.params["bench"].partition("-")[0]
    kept = strict(server) if server in SERVERS else frozenset(Condition)
    store = bench.store
    if server not in SERVERS:
        store.endpoint_url = "http://127.0.0.1:9000"  # type: ignore[misc] # a plain attribute there
    traits = traits_for(S3Uri(bench.bucket, "s/"), store, NOW)
    assert {Condition.CREATE, Condition.READ, Condition.PUBLISH, Condition.DELETE_ONE} <= kept
    assert traits.checks_crc32 == (Condition.WHOLE_CHECKSUM in kept)
    by = Deletes.BATCH if Condition.DELETE_MANY in kept else Deletes.SINGLE
    assert traits.deletes is by
    (key,) = bench.contents()
    assert "/probes/" in key
    assert bench.uploads() == set()
