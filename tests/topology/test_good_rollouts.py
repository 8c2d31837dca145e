"""The good rollout that a rollback restores."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout.good_rollouts import InstalledRelease, PlatformState, add, digest_of, read, target
from spotladder_infra.rollout.tools import Object, Tools


def good(at: str, **revisions: int) -> PlatformState:
    listed = [
        InstalledRelease(name, name, "ns", name, "1.0.0", "d", "{}", number) for name, number in revisions.items()
    ]
    return PlatformState(tuple(listed), at=at)


FIRST, SECOND = good("1", a=1, b=1), good("2", a=2, b=1)


@pytest.mark.parametrize(
    ("goods", "live", "expected"),
    [
        ([], {}, None),
        ([FIRST], {"a": 1, "b": 1}, None),
        ([FIRST], {"a": 2, "b": 1}, FIRST),
        ([FIRST], {"a": 1}, FIRST),
        ([FIRST], {"a": 1, "b": 1, "new": 1}, FIRST),
        ([FIRST, SECOND], {"a": 2, "b": 1}, FIRST),
        ([FIRST, SECOND], {"a": 3, "b": 2}, SECOND),
    ],
)
def test_the_newest_good_rollout_that_differs_from_the_running_one(
    goods: list[PlatformState], live: dict[str, int], expected: PlatformState | None
) -> None:
    assert target(goods, live) == expected


class RecordCluster(Tools):
    """A fake cluster that keeps one ConfigMap."""

    def __init__(self) -> None:
        super().__init__(KubeContext("/nowhere", "lab"))
        object.__setattr__(self, "objects", [])

    objects: list[Object]

    def get(self, *arguments: str) -> Object | None:
        assert arguments[0] == "configmap"
        return self.objects[-1] if self.objects else None

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        assert arguments[0] == "apply"
        assert given is not None
        self.objects.append(json.loads(given))
        return ""


NEWER_CRDS = replace(FIRST, at="2", crds=(("a", "1.1.0", "d"),))


@pytest.mark.parametrize(
    ("found", "new", "recorded"),
    [
        (SECOND, True, [FIRST, SECOND]),
        (replace(FIRST, at="2"), False, [FIRST]),
        (replace(FIRST, at="2", smoke=True), False, [replace(FIRST, smoke=True)]),
        (NEWER_CRDS, True, [NEWER_CRDS]),
    ],
)
def test_a_rollout_without_a_change_keeps_the_earlier_time(
    found: PlatformState, new: bool, recorded: list[PlatformState]
) -> None:
    tools = RecordCluster()
    assert add(tools, FIRST) is True
    assert add(tools, found) is new
    assert read(tools) == recorded


@pytest.mark.parametrize("text", ["", "[", '[{"releases": [{}]}]'])
def test_a_record_that_was_edited_by_hand_says_where_it_is(text: str) -> None:
    tools = RecordCluster()
    tools.objects.append({"data": {"good": text}})
    message = "ConfigMap spotladder-rollout in namespace spotladder-system cannot be read .*: correct or delete it"
    with pytest.raises(EnvironmentFailure, match=message):
        read(tools)


@pytest.mark.parametrize(
    ("chart", "version", "expected"),
    [("a", "1.0.0", "d"), ("a", "1.0.1", ""), ("karpenter-crd", "1.14.0", "c"), ("b", "1.0.0", "")],
)
def test_the_digest_of_an_installed_chart(chart: str, version: str, expected: str) -> None:
    """A chart that only has CRDs is in no release."""
    newer = PlatformState((), (("karpenter-crd", "1.14.0", "c"),), at="2")
    assert digest_of([good("1", a=1), newer], chart, version) == expected
