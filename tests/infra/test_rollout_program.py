"""The program of a stack with Pulumi's mocks, the description of its changes, and the holder of a lock."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from spotladder_infra.rollout.provider import Context
from tests.absent import absent

try:
    import pulumi
except ImportError:
    absent("pulumi is not installed (make setup-infra)", "infra")

from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout import automation, engine
from spotladder_infra.rollout.changes import details
from spotladder_infra.rollout.cluster_rollout import program
from spotladder_infra.rollout.engine import Change
from spotladder_infra.rollout.good_rollouts import InstalledRelease, PlatformState
from spotladder_infra.rollout.provider import VARIABLE, CrdsProvider, ReleaseProvider
from spotladder_infra.topology.fleet import Fleet
from tests.topology.programs import program as program_file


def installed(name: str) -> InstalledRelease:
    return InstalledRelease(name, name, "system", name, "1.0.0", "d", "{}", 0)


class Mocks(pulumi.runtime.Mocks):
    """Records the registered resources."""

    def __init__(self) -> None:
        self.registered: list[tuple[str, dict[str, Any]]] = []

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.registered.append((args.name, args.inputs))
        return args.name, args.inputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        return {}, []


class SlowCrds(Mocks):
    """KubeRay's CRDs are established only after the pools are installed."""

    def __init__(self) -> None:
        super().__init__()
        self._pools = threading.Event()

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if args.name == "pools":
            self._pools.set()
        if args.name == "crds-kuberay-operator":
            assert self._pools.wait(10), "the pools wait for KubeRay's CRDs"
        return super().new_resource(args)


def test_a_release_waits_for_the_crds_of_its_own_chart() -> None:
    mocks = SlowCrds()
    pulumi.runtime.set_mocks(mocks, preview=False)
    crds = (("spotladder-crds", "0.1.0", "a"), ("kuberay-operator", "1.6.1", "b"))
    desired = PlatformState((installed("pools"), installed("kuberay-operator"), installed("spotladder")), crds)

    @pulumi.runtime.test
    def run() -> None:
        program(desired)()

    run()
    names = [name for name, _ in mocks.registered]
    assert names == ["crds-spotladder-crds", "pools", "crds-kuberay-operator", "kuberay-operator", "spotladder"]


OLD = {"chart": "a", "version": "1.0.0", "digest": "d", "values": "{}", "namespace": "n", "release": "a", "drift": "[]"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, (False, [])),
        ({"version": "1.1.0"}, (True, [])),
        ({"digest": "e"}, (True, [])),
        ({"values": '{"a": 1}'}, (True, [])),
        ({"namespace": "m"}, (True, ["namespace"])),
    ],
)
def test_what_changes_a_release(change: dict[str, str], expected: tuple[bool, list[str]]) -> None:
    found = ReleaseProvider().diff("a", OLD, {**OLD, **change})
    assert (found.changes, found.replaces) == expected


@pytest.fixture
def rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a provider in a rollout."""
    monkeypatch.setenv(VARIABLE, Context("", "", {}, 1.0).environment()[VARIABLE])


@pytest.mark.usefixtures("rollout")
def test_drift_is_a_change() -> None:
    drifted = {**OLD, "drift": '["Deployment/a"]'}
    assert ReleaseProvider().diff("a", drifted, OLD).changes
    assert CrdsProvider().diff("a", drifted, OLD).changes
    assert not CrdsProvider().diff("a", OLD, {**OLD, "values": "other"}).changes


@pytest.mark.parametrize(("restored", "changes"), [(None, True), ({"a": 1}, False)])
def test_a_rollback_changes_no_crds(
    restored: dict[str, int] | None, changes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, Context("", "", {}, 1.0, restored).environment()[VARIABLE])
    assert CrdsProvider().diff("a", {**OLD, "version": "1.1.0"}, OLD).changes is changes
    assert ReleaseProvider().diff("a", {**OLD, "version": "1.1.0"}, OLD).changes


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, OLD, "1.0.0"),
        (OLD, {**OLD, "version": "1.1.0"}, "1.0.0 → 1.1.0"),
        (OLD, {**OLD, "digest": "e"}, "1.0.0; another content of the chart"),
        (OLD, {**OLD, "values": json.dumps({"image": {"tag": "2"}})}, "1.0.0; image.tag: unset → 2"),
        ({**OLD, "drift": '["Deployment/a"]'}, OLD, "1.0.0; drift: Deployment/a"),
        (OLD, {**OLD, "values": json.dumps({str(n): n for n in range(8)})}, "2 more values"),
        (
            {**OLD, "values": '{"classes": [{"image": "a"}, {"image": "b"}]}'},
            {**OLD, "values": '{"classes": [{"image": "a"}, {"image": "c"}]}'},
            "1.0.0; classes[1].image: b → c",
        ),
    ],
)
def test_a_change_is_described_in_one_line(old: dict[str, Any], new: dict[str, Any], expected: str) -> None:
    assert expected in details(Change("a", "update", old, new))


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        (None, "file:///state/rollout?metadata=skip"),
        ("s3://acme/fleet", "s3://acme/fleet/rollout?region=us-east-1"),
        ("gs://acme/fleet", "gs://acme/fleet/rollout"),
    ],
)
def test_the_state_is_beside_that_of_terraform(fleet: Fleet, uri: str | None, expected: str) -> None:
    state = None if uri is None else fleet.spec.state.model_copy(update={"uri": uri})  # type: ignore[union-attr]
    changed = fleet.model_copy(update={"spec": fleet.spec.model_copy(update={"state": state})})
    assert engine.backend(changed, Path("/state/rollout")) == expected


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo v2.25.2", "pulumi cannot be used"),
        ("echo rubbish", "pulumi cannot be used"),
        ("exit 1", "pulumi does not run"),
        (None, "pulumi does not run"),
    ],
)
def test_a_pulumi_that_cannot_be_used(
    script: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script is not None:
        program_file(tmp_path, "pulumi", script)
    monkeypatch.setenv("PATH", str(tmp_path))
    automation.command.cache_clear()
    with pytest.raises(EnvironmentFailure, match=rf"{message} .*: install it \(https://www\.pulumi\.com"):
        automation.command()


LOCKED = """\
error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end
  file:///state/.pulumi/locks/organization/spotladder/east/x.json: created by {user}@{host} (pid {pid}) at 2026-11-22
"""


def test_the_holder_of_a_foreign_lock_is_named(fleet: Fleet, tmp_path: Any) -> None:
    context = Context("", "", {}, 1.0)
    stack = engine.PulumiStack(fleet, "east", tmp_path, context)
    with pytest.raises(EnvironmentFailure, match=r"locked by ann@elsewhere \(process 7\) since 2026-11-22") as raised:
        stack.release_lock(None, LOCKED.format(user="ann", host="elsewhere", pid=7), 0.0)
    # Pulumi refuses another name outside of a project: "pass the fully qualified name (organization/project/stack)".
    assert str(raised.value).endswith("pulumi cancel --stack organization/spotladder/training-east")


def test_the_lock_of_a_dead_process_is_removed_and_that_of_a_living_one_is_not(fleet: Fleet, tmp_path: Any) -> None:
    import os
    import platform

    class Cancelled:
        """Counts what was cancelled."""

        times = 0

        def cancel(self) -> None:
            self.times += 1

    stack, cancelled = engine.PulumiStack(fleet, "east", tmp_path, Context("", "", {}, 1.0)), Cancelled()
    stack.release_lock(cancelled, LOCKED.format(user="root", host=platform.node(), pid=2**22 + 1), 0.0)
    assert cancelled.times == 1
    with pytest.raises(EnvironmentFailure, match=f"process {os.getpid()} of this machine, which still runs"):
        stack.release_lock(cancelled, LOCKED.format(user="root", host=platform.node(), pid=os.getpid()), 0.0)
    assert cancelled.times == 1
