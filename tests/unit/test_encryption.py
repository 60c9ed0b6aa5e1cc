"""The encryption that writes name: what the environment says, and what each transport sends."""

from __future__ import annotations

import botocore.session
import pytest

from compactor.catalogs.delta import DeltaCatalog
from compactor.errors import InvalidInput
from compactor.settings.encryption import ENCRYPTION_VARIABLE, Encryption, encryptions
from compactor.settings.tables import parse_table
from tests.support.every_request import REQUESTS
from tests.support.examples import settings
from tests.support.memory_store import MemoryStore
from tests.support.s3_requests import store_on
from tests.support.scripted_s3 import ScriptedS3

KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
NAMES = ("x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id")
# botocore: s3, the operations whose input has ServerSideEncryption, of those that are used.
NAMING = {"put", "create", "start"}


@pytest.mark.parametrize(
    ("value", "bucket", "wanted"),
    [
        ("", "lake", Encryption()),
        ("none", "lake", Encryption()),
        ("AES256", "lake", Encryption("AES256")),
        ("aws:kms", "lake", Encryption("aws:kms")),
        (KEY, "lake", Encryption("aws:kms", KEY)),
        (f"none,lake={KEY}", "lake", Encryption("aws:kms", KEY)),
        (f"none,lake={KEY}", "other", Encryption()),
        (f"raw=none, lake={KEY}, AES256", "raw", Encryption()),
        (f"raw=none, lake={KEY}, AES256", "other", Encryption("AES256")),
    ],
)
def test_the_variable_names_an_encryption_for_each_bucket(
    value: str, bucket: str, wanted: Encryption
) -> None:
    assert encryptions({ENCRYPTION_VARIABLE: value}).of(bucket) == wanted


@pytest.mark.parametrize(
    "value", ["aes256", "lake=", "key/1234", f"{KEY} lake", "arn:aws:s3:::lake"]
)
def test_another_value_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match=ENCRYPTION_VARIABLE):
        encryptions({ENCRYPTION_VARIABLE: value})


@pytest.mark.parametrize("name", REQUESTS)
def test_every_request_that_stores_an_object_names_it(
    s3: ScriptedS3, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(ENCRYPTION_VARIABLE, f"AES256,bucket={KEY}")
    ask, s3.answer = REQUESTS[name]
    ask(store_on(s3.url))
    for asked in s3.asked:
        found = [asked.headers.get(one) for one in NAMES]
        assert found == (["aws:kms", KEY] if name in NAMING else [None, None])


def test_no_other_request_that_the_store_makes_takes_the_parameter() -> None:
    model = botocore.session.get_session().get_service_model("s3")
    taking = {
        name
        for name in model.operation_names
        if (shape := model.operation_model(name).input_shape) is not None
        and "ServerSideEncryption" in shape.members
    }
    made = {"PutObject", "CreateMultipartUpload"}
    # The store makes none of these.
    others = {"CopyObject", "CreateSession", "WriteGetObjectResponse"}
    assert made <= taking <= made | others


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("none", {}),
        ("AES256", {"aws_server_side_encryption": "AES256"}),
        (
            f"AES256,lake={KEY}",
            {"aws_server_side_encryption": "aws:kms", "aws_sse_kms_key_id": KEY},
        ),
    ],
)
def test_delta_rs_gets_it_as_options(
    monkeypatch: pytest.MonkeyPatch, value: str, wanted: dict[str, str]
) -> None:
    monkeypatch.setenv(ENCRYPTION_VARIABLE, value)
    address = parse_table("delta:s3://lake/t/")
    run = settings(table=address.text, s3_destination_uri="s3://lake/t/_c/")
    catalog = DeltaCatalog(address, run, MemoryStore())
    assert wanted.items() <= catalog._options.items()
    assert bool(wanted) == any("encryption" in name for name in catalog._options)
