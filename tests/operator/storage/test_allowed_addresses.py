"""Which checkpoint stores a namespace may use, with which credentials and at which endpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.api.address import Endpoint
from spotladder.api.tenancy import TenantRule
from spotladder.operator.storage.allowed_addresses import AccessDenied, Grant, grant

KEYS = {"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "hidden"}
MINIO = {"AWS_ENDPOINT_URL": "http://minio.minio:9000"}
SAS = {"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=x"}
GOOGLE = {"GOOGLE_SERVICE_ACCOUNT_KEY": "{}"}


def rule(namespaces: str, *listed: str) -> TenantRule:
    uris = [text for text in listed if not text.startswith("http")] or None
    endpoints = [text for text in listed if text.startswith("http")] or None
    return TenantRule.model_validate({"namespaces": namespaces.split(), "uris": uris, "endpoints": endpoints})


ONE = rule("team-a", "s3://team-a", "file:///data/team-a", "http://minio.minio:9000")
PLACE = rule("*", "http://minio.minio:9000")
ALL = rule("*", "s3://shared/jobs", "az://box", "https://*.blob.core.windows.net")


@pytest.mark.parametrize(
    ("rules", "namespace", "uri", "secret", "own"),
    [
        # without a rule: only with the credentials of a Secret
        ((), "team-a", "s3://any/x", KEYS, False),
        ((), "team-a", "gs://any/x", GOOGLE, False),
        ((), "team-a", "az://any/x", SAS, False),
        ((ONE,), "team-b", "s3://any/x", KEYS, False),
        # a rule allows the controller's identity
        ((ONE,), "team-a", "s3://team-a/x", None, True),
        ((ONE,), "team-a", "s3://team-a", {"AWS_REGION": "us-west-2"}, True),
        ((ONE,), "team-a", "file:///data/team-a/x", None, True),
        ((ALL,), "team-b", "s3://shared/jobs/b", None, True),
        ((ONE, ALL), "team-a", "s3://shared/jobs/a", None, True),
        # a rule without addresses allows endpoints only
        ((PLACE,), "team-b", "s3://any/x", {**KEYS, **MINIO}, False),
        ((PLACE, ONE), "team-a", "s3://team-a/x", {**KEYS, **MINIO}, False),
        # and restricts the use of Secrets
        ((ONE,), "team-a", "s3://team-a/x", KEYS, False),
        ((ONE,), "team-a", "s3://team-a/x", {**KEYS, **MINIO}, False),
        ((ALL,), "team-b", "az://box/x", SAS, False),
    ],
)
def test_access_is_granted_with_a_secret_or_by_a_rule(
    rules: tuple[TenantRule, ...], namespace: str, uri: str, secret: Mapping[str, str] | None, own: bool
) -> None:
    found = grant(rules, namespace, uri, secret, "bucket" if secret else "")
    assert found.isolated is not own
    assert found.environment == found.secret == (secret or {})
    assert (found.endpoint is not None) == ("AWS_ENDPOINT_URL" in (secret or {}))


@pytest.mark.parametrize(
    ("rules", "namespace", "uri", "secret", "said"),
    [
        # the controller's own identity, without a rule
        ((), "team-a", "s3://any/x", None, "the controller's own identity"),
        ((), "team-a", "file:///var/run/secrets", None, "the controller's own identity"),
        ((), "team-a", "s3://any/x", {}, "lacks AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ((), "team-a", "s3://any/x", {"AWS_ACCESS_KEY_ID": "user"}, "lacks AWS_ACCESS_KEY_ID"),
        ((), "team-a", "s3://any/x", {**KEYS, "AWS_SECRET_ACCESS_KEY": ""}, "lacks AWS_ACCESS_KEY_ID"),
        ((), "team-a", "s3://any/x", MINIO, "the controller's own identity"),
        ((), "team-a", "s3://any/x", SAS, "the controller's own identity"),
        ((), "team-a", "az://any/x", {"AZURE_STORAGE_ACCOUNT_NAME": "victim"}, "AZURE_STORAGE_SAS_TOKEN"),
        ((), "team-a", "file:///data", KEYS, "the controller's own identity"),
        ((ONE,), "team-b", "s3://team-a/x", None, "namespace team-b may not use"),
        # an address that is not listed
        ((ONE,), "team-a", "s3://team-b/x", None, "allowed: file:///data/team-a, s3://team-a"),
        ((ONE,), "team-a", "s3://team-b/x", KEYS, "add it to uris of the chart's tenancy"),
        ((ONE,), "team-a", "s3://team-a-evil/x", None, "not allowed in namespace team-a"),
        ((PLACE,), "team-a", "s3://any/x", None, "namespace team-a may not use"),
        ((PLACE, ONE), "team-a", "s3://team-b/x", {**KEYS, **MINIO}, "allowed: file:///data/team-a, s3://team-a"),
        ((ONE,), "team-a", "s3://team-a/../team-b", None, "spec.checkpoints.uri: "),
        ((), "team-a", "s3://any/%2e%2e/x", KEYS, "not normalized"),
        # an endpoint together with the controller's identity
        ((ONE,), "team-a", "s3://team-a/x", MINIO, "does not send its own credentials"),
        ((ALL,), "team-b", "az://box/x", {"AZURE_STORAGE_ACCOUNT_NAME": "victim"}, "not send its own credentials"),
        # an endpoint that is not listed
        ((), "team-a", "s3://any/x", {**KEYS, **MINIO}, "to endpoints of the chart's tenancy"),
        ((PLACE,), "team-b", "s3://any", {**KEYS, "AWS_ENDPOINT_URL": "https://minio.minio:9000"}, "is not allowed"),
        ((ALL,), "team-b", "s3://shared/jobs", {**KEYS, **MINIO}, "http://minio.minio:9000 is not allowed"),
        ((ONE,), "team-a", "s3://team-a", {**KEYS, "AWS_ENDPOINT_URL": "http://minio.minio"}, "is not allowed"),
        # values that would change the host
        (
            (),
            "team-a",
            "s3://any/x",
            {**KEYS, "AWS_ENDPOINT_URL": "http://u@h"},
            "AWS_ENDPOINT_URL must have a valid host",
        ),
        ((), "team-a", "s3://any/x", {**KEYS, "AWS_ENDPOINT_URL": "http://2852039166"}, "not in dotted form"),
        ((), "team-a", "s3://any/x", {**KEYS, "AWS_REGION": "x@evil.example#"}, "AWS_REGION does not have the form"),
        ((), "team-a", "s3://any/x", {**KEYS, "AWS_REGION": "r", "AWS_DEFAULT_REGION": "a/b"}, "AWS_DEFAULT_REGION"),
        ((), "team-a", "az://any/x", {**SAS, "AZURE_STORAGE_ACCOUNT_NAME": "evil.com/x"}, "does not have the form"),
        ((), "team-a", "gs://any/x", {"GOOGLE_SERVICE_ACCOUNT_KEY": '{"gcs_base_url": "http://x"}'}, "gcs_base_url"),
        ((), "team-a", "gs://any/x", {"GOOGLE_SERVICE_ACCOUNT_KEY": '{"gcs\\u005fbase_url": ""}'}, "gcs_base_url"),
    ],
)
def test_access_is_denied_with_the_cause_and_without_secrets(
    rules: tuple[TenantRule, ...], namespace: str, uri: str, secret: Mapping[str, str] | None, said: str
) -> None:
    with pytest.raises(AccessDenied) as denied:
        grant(rules, namespace, uri, secret, "bucket" if secret is not None else "")
    assert said in str(denied.value)
    places = ("spec.checkpoints.uri: ", f"spec.checkpoints.credentials: Secret {namespace}/bucket")
    assert str(denied.value).startswith(places)
    assert "hidden" not in str(denied.value)


OF_A_CLOUD = [
    *("https://s3.amazonaws.com", "https://s3.us-east-1.amazonaws.com", "https://s3.us-gov-west-1.amazonaws.com/"),
    *("https://s3.dualstack.eu-central-1.amazonaws.com", "https://s3.cn-north-1.amazonaws.com.cn"),
    *("https://s3-fips.us-east-2.amazonaws.com", "https://s3-fips.dualstack.us-east-2.amazonaws.com"),
    *("https://storage.googleapis.com", "https://storage.googleapis.com:443"),
]
OF_OTHERS = [
    *("http://s3.us-east-1.amazonaws.com", "https://s3.us-east-1.amazonaws.com:8443", "https://amazonaws.com"),
    *("https://s3.us-east-1.amazonaws.com.evil.example", "https://evil-s3.us-east-1.amazonaws.com"),
    *(
        "https://ec2.us-east-1.amazonaws.com",
        "https://s3.evil.us-east-1.amazonaws.com",
        "https://storage.googleapis.co",
    ),
    *("https://metadata.googleapis.com", "http://storage.googleapis.com", "http://metadata.google.internal"),
    *("http://169.254.169.254", "https://[::ffff:169.254.169.254]", "http://[fd00:ec2::254]", "http://100.100.100.200"),
    *("http://localhost:9000", "http://127.0.0.1", "http://[::1]:9000", "http://10.0.0.1", "http://0.0.0.0"),
]


@pytest.mark.parametrize("rules", [(), (rule("*", "s3://any"),)], ids=["no rule", "listed addresses"])
@pytest.mark.parametrize("endpoint", [*OF_A_CLOUD, *OF_OTHERS])
def test_only_the_endpoints_of_clouds_need_no_rule(endpoint: str, rules: tuple[TenantRule, ...]) -> None:
    secret = {**KEYS, "AWS_ENDPOINT_URL": endpoint}
    if endpoint in OF_A_CLOUD:
        assert grant(rules, "team-a", "s3://any/x", secret, "bucket") == Grant(secret, isolated=True, secret=secret)
    else:
        with pytest.raises(AccessDenied, match="is not allowed in this namespace"):
            grant(rules, "team-a", "s3://any/x", secret, "bucket")


@pytest.mark.parametrize("endpoint", OF_OTHERS)
def test_a_listed_endpoint_is_allowed(endpoint: str) -> None:
    secret = {**KEYS, "AWS_ENDPOINT_URL": endpoint}
    found = grant((rule("team-a", endpoint),), "team-a", "s3://any/x", secret, "bucket")
    assert found.endpoint == Endpoint.parse(endpoint)
    with pytest.raises(AccessDenied):
        grant((rule("team-a", endpoint),), "team-b", "s3://any/x", secret, "bucket")


NAMES = [
    *(*KEYS, *SAS, *GOOGLE, "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_REGION", "AZURE_STORAGE_ACCOUNT_KEY"),
    *("AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID", "OTHER"),
]


@given(
    st.sampled_from(["s3://b/x", "gs://b/x", "az://b/x", "file:///x"]),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["", "x", "acc", "http://h:1", "https://evil.example"])),
    st.booleans(),
)
def test_no_secret_redirects_the_controllers_identity_to_another_endpoint(
    uri: str, secret: dict[str, str], listed: bool
) -> None:
    everything = rule("*", "s3://*", "gs://*", "az://*", "file:///", "http://h:1", "https://evil.example")
    try:
        found: Grant = grant((everything,) if listed else (), "ns", uri, secret, "s")
    except AccessDenied:
        return
    if found.isolated:
        assert uri[:2] != "fi"
        assert listed or found.endpoint is None
        return
    assert listed
    assert found.endpoint is None
    assert set(found.environment) <= {"AWS_REGION", "AWS_DEFAULT_REGION"}


def test_a_google_key_that_is_not_a_json_object_is_validated_by_the_store() -> None:
    assert grant((), "ns", "gs://b/x", {"GOOGLE_SERVICE_ACCOUNT_KEY": "{"}, "s").isolated
    assert grant((), "ns", "gs://b/x", {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps([])}, "s").isolated


@pytest.mark.parametrize(
    ("endpoints", "chosen"),
    [
        (["https://minio.example.com"], False),
        (["https://*.example.com"], True),
        (["https://*.example.com", "https://minio.example.com"], False),
    ],
)
def test_an_endpoint_that_only_a_pattern_lists_is_the_tenants_choice(endpoints: list[str], chosen: bool) -> None:
    secret = {**KEYS, "AWS_ENDPOINT_URL": "https://minio.example.com"}
    assert grant([rule("*", *endpoints)], "team-a", "s3://any/x", secret, "bucket").chosen is chosen
