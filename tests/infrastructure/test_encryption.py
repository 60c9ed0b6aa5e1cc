"""The encryption that functions and Spark jobs name, and the keys that they may use for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compactor.settings.encryption import ENCRYPTION_VARIABLE, Encryption, encryptions
from tests.infrastructure.cloud.assembly import Assembly
from tests.infrastructure.configurations import EVERY, KMS_KEYS, key_of

Synthesized = Callable[[str], Assembly]
_LAKE, _TABLES = KMS_KEYS["lake"], KMS_KEYS["tables"]


def of_functions(assembly: Assembly, package: str) -> set[str]:
    return {
        json.dumps(one["Environment"]["Variables"][ENCRYPTION_VARIABLE])
        for one in assembly.functions().values()
        if one["Handler"].startswith(package)
    }


def of_jobs(assembly: Assembly) -> Iterator[Any]:
    """The value for the jobs of each state machine that has Spark."""
    for one in assembly.resources("AWS::StepFunctions::StateMachine").values():
        yield one["DefinitionSubstitutions"]["SparkEncryption"]


def test_every_function_and_job_is_given_a_value(
    every_configuration: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(every_configuration)
    context = EVERY[every_configuration]
    values = [json.loads(one) for one in of_functions(assembly, "compactor")]
    values += of_jobs(assembly)
    assert values
    if key_of(context, "destination") is None and key_of(context, "maintenance") is None:
        assert set(values) == {context.get("encryption", "none")}


@pytest.mark.parametrize(
    "name",
    [
        "KMS, clean-up, imported buckets",
        "events, KMS, imported buckets",
        "readers' table, KMS, clean-up, imported buckets",
        "table in Glue, KMS, imported buckets",
        "table with a key, KMS, imported buckets, running cluster",
    ],
)
def test_outputs_and_state_in_an_imported_bucket_get_its_key(
    name: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(name)
    (said,) = of_functions(assembly, "compactor_handlers.")
    named = encryptions({ENCRYPTION_VARIABLE: json.loads(said)})
    assert named.of("lake") == Encryption("aws:kms", _LAKE)
    # Nothing is written to the source.
    assert named.by_bucket.keys() <= {"lake", "tables"}
    if "table_location_uri" in EVERY[name]:
        assert named.of("tables") == named.others == Encryption("aws:kms", _TABLES)
    assert [*of_jobs(assembly)] == [json.loads(said)]


def test_tables_get_the_key_of_tables_and_reports_that_of_the_state(
    synthesized: Synthesized,
) -> None:
    assembly = synthesized("maintenance alone, KMS, running cluster")
    (said,) = of_functions(assembly, "compactor_tables.")
    named = encryptions({ENCRYPTION_VARIABLE: json.loads(said)})
    assert named.of("lake") == Encryption("aws:kms", _LAKE)
    (by_spark,) = of_jobs(assembly)
    named = encryptions({ENCRYPTION_VARIABLE: by_spark})
    assert named.of("lake") == Encryption("aws:kms", _LAKE)
    assert named.of("tables") == named.others == Encryption("aws:kms", _TABLES)


def test_a_made_bucket_is_named_as_cloudformation_names_it(synthesized: Synthesized) -> None:
    (said,) = of_functions(synthesized("EMR on EC2, KMS"), "compactor_handlers.")
    assert "Ref" in said
    assert _LAKE in said


@pytest.mark.parametrize("definition", ["compaction", "tables"])
def test_each_way_to_start_spark_passes_it_on(definition: str) -> None:
    from compactor_dev import REPOSITORY

    text = (REPOSITORY / "statemachine" / f"{definition}.asl.json").read_text("utf-8")
    for driver in ("spark.yarn.appMasterEnv", "spark.emr-serverless.driverEnv"):
        regions = text.count(f"{driver}.AWS_REGION=")
        assert regions
        assert text.count(f"{driver}.{ENCRYPTION_VARIABLE}=${{SparkEncryption}}") == regions
