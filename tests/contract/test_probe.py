"""What a probe finds of a server is what the other cases of this contract find."""

from __future__ import annotations

import pytest

from compactor import conditions
from compactor.conditions import Verdict
from compactor.probe.probe import ask_and_record
from compactor.settings.uris import S3Uri
from tests.contract.benches import Bench
from tests.support.server_differences import SERVERS, Condition, strict

NOW = 1_700_000_000.0
SAME = {
    conditions.Condition.CREATE: Condition.CREATE,
    conditions.Condition.READ: Condition.READ,
    conditions.Condition.PUBLISH: Condition.PUBLISH,
    conditions.Condition.WHOLE_CHECKSUM: Condition.WHOLE_CHECKSUM,
    conditions.Condition.COPY: Condition.COPY,
    conditions.Condition.COPIED_CHECKSUM: Condition.COPIED_CHECKSUM,
    conditions.Condition.DELETE_MANY: Condition.DELETE_MANY,
    conditions.Condition.DELETE_ONE: Condition.DELETE_ONE,
}


def test_a_probe_finds_what_this_contract_finds(
    bench: Bench, request: pytest.FixtureRequest
) -> None:
    server = request.node.callspec.params["bench"].partition("-")[0]
    kept = strict(server) if server in SERVERS else frozenset(Condition)
    found = {
        finding.condition: finding.verdict is Verdict.HONOURED
        for finding in ask_and_record(S3Uri(bench.bucket, "s/"), bench.store, NOW, deletes=True)
    }
    assert found.pop(conditions.Condition.LIST)
    asked = {condition: SAME[condition] in kept for condition in found if condition in SAME}
    assert asked == {one: answer for one, answer in found.items() if one in SAME}
    # Where nothing is published, nothing can be published over.
    assert SAME.keys() - asked.keys() <= {conditions.Condition.PUBLISH}
    assert all("/probes/" in key for key in bench.contents())
    assert len(bench.contents()) == 1
    assert bench.uploads() == set()
