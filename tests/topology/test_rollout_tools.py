"""Failures of helm and kubectl: one line with the cause, and the remedy for an unreachable cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.programs import CommandFailure, require
from spotladder_infra.rollout.release import LiveRelease, Release, releases
from spotladder_infra.rollout.tools import Tools
from tests.topology.programs import program


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        (
            'error: context "lab" does not exist',
            'kubectl get pods: error: context "lab" does not exist (context lab): correct the cluster\'s context in',
        ),
        (
            "Error in configuration: context was not found for specified context: lab",
            "context was not found for specified context: lab (context lab): correct the cluster's context in",
        ),
        (
            """E1123 memcache.go:265] couldn't get current server API group list
The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?""",
            "did you specify the right host or port? (context lab): check that the API server runs",
        ),
        (
            "Unable to connect to the server: dial tcp: lookup lab.example on 10.0.0.2:53: no such host",
            "no such host (context lab): check that the API server runs and that this machine reaches it: kubectl",
        ),
        (
            "error: You must be logged in to the server (Unauthorized)",
            "(Unauthorized) (context lab): sign in again, then try: kubectl --context lab version",
        ),
        (
            "Unable to connect to the server: getting credentials: exec: executable aws not found",
            "executable aws not found (context lab): sign in again",
        ),
        ('Error from server (Forbidden): pods is forbidden: User "ann" cannot list', 'User "ann" cannot list'),
        ("", "kubectl get pods: no message"),
    ],
)
def test_a_cluster_out_of_reach(stderr: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "said").write_text(stderr)
    program(tmp_path, "kubectl", f"cat {tmp_path}/said >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(CommandFailure) as failure:
        Tools(KubeContext("", "lab")).kubectl("get", "pods")
    assert expected in str(failure.value)
    assert "\n" not in str(failure.value)
    assert ("context lab" in str(failure.value)) == ("context lab" in expected)


def test_a_comparison_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'error: unable to recognize "STDIN": Get "https://127.0.0.1:1/api": dial tcp: connect: connection refused'
    program(tmp_path, "kubectl", f"cat >/dev/null; echo '{said}' >&2; exit 2")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(CommandFailure, match=r"kubectl diff: .* \(context lab\): check that the API server runs"):
        Tools(KubeContext("", "lab")).changes("kind: Pod\nmetadata:\n  name: a\n", "default")


def test_a_difference_is_read_in_every_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool `diff` speaks the user's language, and drift in another one was none."""
    names = "/T/LIVE-1/apps.v1.Deployment.default.web", "/T/MERGED-2/apps.v1.Deployment.default.web"
    english, german = "Files {} and {} differ".format(*names), "Dateien {} und {} sind verschieden.".format(*names)
    program(tmp_path, "kubectl", f'cat >/dev/null; [ "$LC_ALL" = C ] && echo "{english}" || echo "{german}"; exit 1')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert Tools(KubeContext("", "lab")).changes("kind: Deployment\nmetadata:\n  name: web\n", "default") == [
        "Deployment/web"
    ]


@pytest.mark.parametrize(
    ("said", "installed"),
    [
        ("Error: release: not found", False),
        ("Error: Kubernetes cluster unreachable: getting credentials: exec: executable aws not found", None),
    ],
)
def test_only_a_missing_release_counts_as_not_installed(
    said: str, installed: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise Pulumi would treat a release as deleted when the credentials have expired."""
    program(tmp_path, "helm", f"echo '{said}' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    release = Release(Tools(KubeContext("", "lab")), "kuberay-operator", "kuberay-system")
    if installed is False:
        assert release.live() == LiveRelease()
        return
    with pytest.raises(CommandFailure, match="sign in again"):
        release.live()


def test_a_release_of_a_user_is_not_that_of_the_rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its revision would be recorded as the good one, and a rollback would look for it."""
    listed = [
        {"name": "spotladder", "namespace": namespace, "revision": revision}
        for namespace, revision in (("spotladder-system", "3"), ("team-a", "9"))
    ]
    (tmp_path / "listed").write_text(json.dumps(listed))
    program(tmp_path, "helm", f"cat {tmp_path}/listed")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert releases(Tools(KubeContext("", "lab"))) == {"spotladder": listed[0]}


def test_a_program_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentFailure, match="helm is not on the PATH: install it"):
        require("helm")
    with pytest.raises(EnvironmentFailure, match="kubectl is not on the PATH: install it"):
        Tools(KubeContext("", "lab")).kubectl("get", "pods")
