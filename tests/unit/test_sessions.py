"""Sessions of botocore: one for a client, with botocore's own descriptions of services."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import DataNotFoundError, UnknownServiceError
from botocore.httpsession import get_cert_path
from botocore.loaders import create_loader

from compactor.aws.services import service_client
from compactor.errors import InvalidInput
from compactor.s3.routes import Routes
from compactor.s3.sessions import ca_bundle, made_by, new_session, session_of
from compactor.s3.store import S3Store, make_client

ENDPOINT = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


def loader(session: Any) -> Any:
    return session.get_component("data_loader")


@pytest.mark.parametrize("service", ["s3", "dynamodb", "glue", "sts"])
@pytest.mark.parametrize("kind", ["service-2", "endpoint-rule-set-1", "paginators-1"])
def test_what_a_session_knows_of_a_service_is_what_botocore_knows(service: str, kind: str) -> None:
    assert loader(new_session()).load_service_model(service, kind) == (
        create_loader().load_service_model(service, kind)
    )


@pytest.mark.parametrize("name", ["endpoints", "partitions", "_retry", "sdk-default-configuration"])
def test_what_a_session_knows_of_all_services_is_what_botocore_knows(name: str) -> None:
    assert loader(new_session()).load_data(name) == create_loader().load_data(name)


def test_every_service_that_botocore_knows_is_known() -> None:
    known = loader(new_session()).list_available_services("service-2")
    assert set(create_loader().list_available_services("service-2")) <= set(known)
    assert known == sorted(known)


def test_a_service_that_is_unknown_is_refused_by_name() -> None:
    with pytest.raises(UnknownServiceError, match="no-such-service"):
        loader(new_session()).load_service_model("no-such-service", "service-2")


def test_a_description_that_a_service_lacks_is_not_found() -> None:
    with pytest.raises(DataNotFoundError):
        loader(new_session()).load_service_model("sts", "no-such-kind-1")


def test_descriptions_below_the_users_own_path_count_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, another = tmp_path / "own", tmp_path / "another"
    for directory, version in ((own, "2099-01-01"), (another, "2098-01-01")):
        described = directory / "s3" / version / "service-2.json"
        described.parent.mkdir(parents=True)
        described.write_text(json.dumps({"metadata": {"of": directory.name}}), encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OWN", "own")
    monkeypatch.setenv("AWS_DATA_PATH", f"~/$OWN:{another}")
    session = new_session()
    assert session.get_service_data("s3")["metadata"] == {"of": "own"}
    assert session.get_service_data("s3", "2098-01-01")["metadata"] == {"of": "another"}


def test_a_client_its_credentials_and_whom_it_trusts_are_found_by_one_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    real = botocore.session.get_session

    def counted(*given: Any) -> Any:
        made.append(real(*given))
        return made[-1]

    monkeypatch.setattr(botocore.session, "get_session", counted)
    client = make_client(ENDPOINT)
    route = Routes(client).of("bucket")
    assert route is not None
    assert route.access_key == "AKIDTEST"
    assert [session_of(client)] == made


def test_a_client_that_was_made_elsewhere_gets_one_session_of_its_own() -> None:
    client = botocore.session.get_session().create_client("s3", endpoint_url=ENDPOINT)
    assert session_of(client) is session_of(client)
    assert session_of(client) is not session_of(make_client(ENDPOINT))


def test_a_session_is_kept_no_longer_than_its_client() -> None:
    session = new_session()
    client = made_by(session, session.create_client("s3", endpoint_url=ENDPOINT))
    gone = weakref.ref(session)
    assert session_of(client) is session
    del session, client
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("given", "of_requests", "found"),
    [
        ("", "", None),
        ("one.pem", "", "one.pem"),
        ("", "other.pem", "other.pem"),
        ("one.pem", "other.pem", "one.pem"),
        ("one.pem", "nowhere.pem", "one.pem"),
    ],
)
def test_whom_to_trust_is_what_botocore_is_set_to(
    given: str,
    of_requests: str,
    found: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one.pem", "other.pem"):
        Path(name).touch()
    monkeypatch.setenv("AWS_CA_BUNDLE", given)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", of_requests)
    assert ca_bundle(new_session()) == found


@pytest.mark.parametrize("told", ["nowhere.pem", "."])
def test_whom_to_trust_has_to_be_a_file_where_a_server_has_to_be_trusted(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", told)
    with pytest.raises(InvalidInput, match="REQUESTS_CA_BUNDLE"):
        S3Store(make_client("https://127.0.0.1:9")).get("bucket", "key")
    assert Routes(make_client(ENDPOINT)).of("bucket") is not None


def test_the_usual_authorities_are_those_of_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    route = Routes(make_client("https://127.0.0.1:9")).of("bucket")
    assert route is not None
    assert route.site.ca_bundle == get_cert_path(True)
    monkeypatch.setitem(sys.modules, "certifi", None)
    route = Routes(make_client("https://127.0.0.1:9")).of("bucket")
    assert route is not None
    assert Path(route.site.ca_bundle).is_file()


def test_clients_of_other_services_have_their_own_region() -> None:
    assert service_client("dynamodb").meta.region_name == "eu-central-1"
