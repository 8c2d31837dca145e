from __future__ import annotations

import base64
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from spotladder.clusters.clock import SystemClock
from spotladder.clusters.connection import connect, contexts, in_cluster
from spotladder.clusters.credentials import EARLY, REREAD, BearerToken, token_file, token_of_program
from spotladder.errors import EnvironmentFailure
from tests.clusters.stepped_clock import SteppedClock


def config(**user: Any) -> dict[str, Any]:
    return {
        "clusters": [{"name": "east", "cluster": {"server": "http://east:1/"}}],
        "users": [{"name": "me", "user": user or {"token": "secret-token"}}],
        "contexts": [{"name": "work", "context": {"cluster": "east", "user": "me", "namespace": "team-a"}}],
        "current-context": "work",
    }


def written(folder: Path, content: Any, name: str = "config") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: [", "is not YAML"),
        ("[" * 2000, "is nested more than 32 levels deep"),
        ("[]", "should be a kubeconfig"),
        ("", "has no clusters; it should be a kubeconfig"),
        ("clusters: none", "clusters: must be a list in a kubeconfig"),
        ("at: 2020-99-99", "is not YAML"),
        ("\x00", "is not YAML"),
        ({**config(), "clusters": ["foo"]}, "clusters[0]: must be a mapping"),
        ({**config(), "contexts": [{"context": {}}]}, "contexts[0].name: is missing"),
        ({**config(), "contexts": 3}, "contexts: must be a list"),
        ({**config(), "users": {"me": {"token": "secret-token"}}}, "users: must be a list"),
        ({**config(), "contexts": [{"name": ["work"]}]}, "contexts[0].name: must be text"),
        (
            {**config(), "contexts": [{"name": "work", "context": {"cluster": "east", "namespace": 5}}]},
            "contexts[0].context.namespace: must be text",
        ),
        (
            {**config(), "clusters": [{"name": "east", "cluster": {"server": "http://e", "certificate-authority": 5}}]},
            "clusters[0].cluster.certificate-authority: must be text",
        ),
        (
            {**config(), "clusters": [{"name": "east", "cluster": {"insecure-skip-tls-verify": "false"}}]},
            "clusters[0].cluster.insecure-skip-tls-verify: must be true or false",
        ),
        (config(tokenFile=5), "users[0].user.tokenFile: must be text"),
        (config(exec="aws"), "users[0].user.exec: must be a mapping"),
        (config(exec={"command": "aws", "args": 5}), "users[0].user.exec.args: must be a list"),
        (config(exec={"command": "aws", "env": ["a=b"]}), "users[0].user.exec.env[0]: must be a mapping"),
        (config(exec={"command": "aws", "env": [{"nam": "x"}]}), "users[0].user.exec.env[0].name: is missing"),
        ({**config(), "current-context": ""}, "no current-context"),
        ({**config(), "current-context": "home"}, "there is no context 'home'; there is: work"),
        ({**config(), "users": []}, "there is no user 'me'"),
        ({**config(), "clusters": [{"name": "east", "cluster": {}}]}, "has no server"),
        (config(**{"auth-provider": {"name": "gcp"}}), "exec plugin"),
        (
            {
                **config(),
                "clusters": [{"name": "east", "cluster": {"server": "https://e", "certificate-authority": "/no"}}],
            },
            "the certificate authority /no cannot be used: No such file or directory",
        ),
        (
            {
                **config(),
                "clusters": [
                    {"name": "east", "cluster": {"server": "https://e", "certificate-authority-data": "AAAA"}}
                ],
            },
            "the certificate authority cannot be used: ",
        ),
        (
            {
                **config(**{"client-certificate": "/no/client.crt", "client-key": "/no/client.key"}),
                "clusters": [{"name": "east", "cluster": {"server": "https://e"}}],
            },
            "the client certificate and key /no/client.crt /no/client.key cannot be used: No such file or directory",
        ),
        (config(**{"as": "a-viewer"}), "the user me acts as a-viewer (impersonation)"),
    ],
)
def test_the_error_for_an_invalid_kubeconfig_has_the_cause_and_no_secret(
    tmp_path: Path, content: Any, says: str
) -> None:
    with pytest.raises(EnvironmentFailure) as raised:
        connect(written(tmp_path, content))
    assert says in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path / 'config'}: ")
    assert "secret-token" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "server",
    ["", "east", "east:6443", "ftp://east", "https://", "https://:6443", "https://east:99999", "https://east:x"],
)
def test_an_invalid_server_address_is_rejected(server: str, tmp_path: Path) -> None:
    body = {**config(), "clusters": [{"name": "east", "cluster": {"server": server}}]}
    with pytest.raises(EnvironmentFailure) as raised:
        connect(written(tmp_path, body))
    said = f"{tmp_path / 'config'}: cluster east: server {server!r} is not an address: write one like https://host:6443"
    assert str(raised.value) == said


@pytest.mark.parametrize("server", ["https://east", "http://127.0.0.1:65535/k8s/clusters/c-1", "HTTPS://[::1]:6443"])
def test_valid_server_addresses_are_accepted(server: str, tmp_path: Path) -> None:
    body = {**config(), "clusters": [{"name": "east", "cluster": {"server": server}}]}
    assert connect(written(tmp_path, body)).server == server


async def test_numbers_are_accepted_as_text_where_kubectl_accepts_them(tmp_path: Path) -> None:
    found = connect(written(tmp_path, config(token=5)))
    assert await found.credentials.headers() == {"Authorization": "Bearer 5"}
    connect(written(tmp_path, config(exec={"command": "aws", "args": ["-n", 5], "env": [{"name": "N", "value": 0}]})))


@pytest.mark.parametrize("authority", ["AAAA", base64.b64encode("é".encode()).decode()])
@pytest.mark.parametrize("field", ["certificate-authority-data", "client-certificate-data"])
def test_invalid_certificates_are_rejected(tmp_path: Path, field: str, authority: str) -> None:
    body = config(**{"client-certificate-data": "%%%"})
    body["clusters"][0]["cluster"] = {"server": "https://east", "certificate-authority-data": authority}
    if field == "client-certificate-data":
        del body["clusters"][0]["cluster"]["certificate-authority-data"]
    with pytest.raises(EnvironmentFailure):
        connect(written(tmp_path, body))


def test_the_error_for_a_missing_kubeconfig_has_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match="set a cluster with --kubeconfig or KUBECONFIG"):
        connect(str(tmp_path / "none"))


def test_several_files_are_merged_as_kubectl_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = config(), config()
    first["current-context"] = "other"
    second["contexts"][0]["name"] = "other"
    second["contexts"][0]["context"] = {"cluster": "west", "user": "me"}
    second["clusters"] = [{"name": "west", "cluster": {"server": "http://west"}}]
    paths = os.pathsep.join([written(tmp_path, first, "a"), written(tmp_path, second, "b"), str(tmp_path / "none")])
    monkeypatch.setenv("KUBECONFIG", paths)
    assert connect().server == "http://west"
    assert connect(context="work").server == "http://east:1"


def both(folder: Path, monkeypatch: pytest.MonkeyPatch, first: Any, second: Any) -> None:
    files = [written(folder, content, name) for name, content in (("a", first), ("b", second))]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(files))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    "other",
    [
        "",
        "# nothing yet",
        {"users": [{"name": "you", "user": {}}]},
        {"clusters": None},
        {"clusters": [], "contexts": None, "users": None},
        {"current-context": ""},
    ],
)
def test_an_incomplete_kubeconfig_is_accepted_together_with_a_complete_one(
    other: Any, swapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both(tmp_path, monkeypatch, *((config(), other) if swapped else (other, config())))
    assert (connect().server, contexts()) == ("http://east:1", ("work",))


async def test_the_first_file_that_sets_a_value_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = config(token="other")  # noqa: S106
    second["clusters"][0]["cluster"]["server"] = "http://other"
    both(tmp_path, monkeypatch, config(), second)
    found = connect()
    assert found.server == "http://east:1"
    assert await found.credentials.headers() == {"Authorization": "Bearer secret-token"}


def test_an_unreadable_kubeconfig_is_an_error_and_a_missing_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([written(tmp_path, config()), str(tmp_path)]))
    with pytest.raises(EnvironmentFailure, match="Is a directory"):
        connect()


def test_the_in_cluster_configuration_is_rejected_outside_a_pod(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match="does not run in a pod"):
        in_cluster(tmp_path, {})


async def test_a_token_file_is_read_again_after_its_interval_or_on_request(tmp_path: Path) -> None:
    clock, file = SteppedClock(), tmp_path / "token"
    file.write_text("one\n")
    token = token_file(file, clock)
    assert await token.headers() == {"Authorization": "Bearer one"}
    file.write_text("two\n")
    assert await token.headers() == {"Authorization": "Bearer one"}
    assert await token.headers(fresh=True) == {"Authorization": "Bearer two"}
    file.write_text("three\n")
    await clock.advance(REREAD + 1)
    assert await token.headers() == {"Authorization": "Bearer three"}


async def test_a_token_is_used_until_it_is_refused_while_the_next_one_cannot_be_fetched() -> None:
    tokens = ["one"]

    async def fetch() -> tuple[str, float]:
        if not tokens:
            raise EnvironmentFailure("the identity service does not answer")
        return tokens.pop(), 0.0

    token = BearerToken(fetch, clock=SystemClock())
    assert await token.headers() == await token.headers() == {"Authorization": "Bearer one"}
    with pytest.raises(EnvironmentFailure, match="does not answer"):
        await token.headers(fresh=True)
    tokens.append("two")
    assert await token.headers() == {"Authorization": "Bearer two"}


def program(folder: Path, body: str) -> BearerToken:
    path = folder / "program"
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    command = [str(path)], {"EXTRA": "1"}, "client.authentication.k8s.io/v1"
    return BearerToken(lambda: token_of_program(*command), clock=SystemClock())


COUNTING = """
import json, os, pathlib, sys
assert os.environ["EXTRA"] == "1" and json.loads(os.environ["KUBERNETES_EXEC_INFO"])["kind"] == "ExecCredential"
counter = pathlib.Path(__file__).with_name("count")
number = int(counter.read_text()) + 1 if counter.exists() else 1
counter.write_text(str(number))
print(json.dumps({"status": {"token": f"t{number}", "expirationTimestamp": "EXPIRES"}}))
"""


async def test_an_exec_plugin_is_run_again_only_when_its_token_expires(tmp_path: Path) -> None:
    credentials = program(tmp_path, COUNTING.replace("EXPIRES", "2999-01-01T00:00:00Z"))
    for _ in range(3):
        assert await credentials.headers() == {"Authorization": "Bearer t1"}
    assert await credentials.headers(fresh=True) == {"Authorization": "Bearer t2"}
    soon = program(tmp_path, COUNTING.replace("EXPIRES", "2000-01-01T00:00:00Z"))
    assert (await soon.headers(), await soon.headers()) == (
        {"Authorization": "Bearer t3"},
        {"Authorization": "Bearer t4"},
    )
    assert EARLY > 0


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("import sys; sys.exit(3)", "failed (3): no message"),
        (
            r"import sys; sys.exit('no account:\n  $ gcloud auth login\n)')",
            "failed (1): no account: $ gcloud auth login )",
        ),
        ("print('hello')", "printed no ExecCredential"),
        ("print('{}')", "printed no ExecCredential"),
        ("""print('{"kind": "Status", "status": "Failure"}')""", "printed no ExecCredential"),
        ("""print('{"status": {"token": null}}')""", "printed no ExecCredential"),
    ],
)
async def test_the_error_for_a_failed_exec_plugin_has_its_output(tmp_path: Path, body: str, says: str) -> None:
    with pytest.raises(EnvironmentFailure) as raised:
        await program(tmp_path, body).headers()
    assert says in str(raised.value)


async def test_the_error_for_a_missing_exec_plugin_has_the_install_hint() -> None:
    with pytest.raises(EnvironmentFailure, match=r"no-such-plugin.*install it from there"):
        await token_of_program(["no-such-plugin"], {}, "v1", "install it\n from there")
