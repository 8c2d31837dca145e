"""Places a pod on a tier's nodes: adds node labels and tolerations to the user's own, which may narrow a tier but not
contradict it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spotladder.api.problems import Path, dotted
from spotladder.errors import InvalidSpec

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where pods may run. `labels`: required node labels; `one_of`: labels with one of these values; `none_of`: labels
    with none of these values. `tolerations` are in Kubernetes' format."""

    labels: tuple[tuple[str, str], ...] = ()
    one_of: tuple[tuple[str, tuple[str, ...]], ...] = ()
    none_of: tuple[tuple[str, tuple[str, ...]], ...] = ()
    tolerations: tuple[Mapping[str, Any], ...] = ()

    def avoiding(self, nodes: tuple[str, ...]) -> Placement:
        """The placement without these nodes."""
        return replace(self, none_of=(*self.none_of, (HOSTNAME, nodes)))

    @property
    def expressions(self) -> list[dict[str, Any]]:
        """The part of the placement that needs node affinity."""
        return [
            {"key": key, "operator": operator, "values": list(values)}
            for operator, entries in (("In", self.one_of), ("NotIn", self.none_of))
            for key, values in entries
        ]

    def allowed(self, key: str, value: str) -> bool:
        """Whether a node with this label may belong to the tier."""
        return (
            all(value == wanted for name, wanted in self.labels if name == key)
            and all(value in values for name, values in self.one_of if name == key)
            and all(value not in values for name, values in self.none_of if name == key)
        )

    def values_of(self, key: str) -> str:
        """The tier's requirement for this label, for messages."""
        for name, wanted in self.labels:
            if name == key:
                return wanted
        for name, values in self.one_of:
            if name == key:
                return " or ".join(values)
        return " and ".join(f"not {value}" for name, values in self.none_of if name == key for value in values)


def place(pod_spec: dict[str, Any], placement: Placement, tier: str, at: Path) -> None:
    """Add the placement to the pod, in place. `at` is the path of the pod's spec in the user's file.

    Raises:
        InvalidSpec: the user's own selector or affinity excludes all nodes of the tier; names that field.
    """
    selector = pod_spec.get("nodeSelector") or {}
    for key, value in selector.items():
        if not placement.allowed(key, value):
            raise _conflict(placement, tier, key, str(value), (*at, "nodeSelector", key))
    _check_affinity(pod_spec, placement, tier, at)
    if placement.labels:
        pod_spec["nodeSelector"] = {**selector, **dict(placement.labels)}
    if placement.expressions:
        _require(pod_spec, placement.expressions)
    if placement.tolerations:
        own = list(pod_spec.get("tolerations") or ())
        pod_spec["tolerations"] = own + [dict(entry) for entry in placement.tolerations if dict(entry) not in own]


_WHERE = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


def _terms(pod_spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: Any = pod_spec
    for name in _WHERE:
        found = (found or {}).get(name)
    return found or []


def _check_affinity(pod_spec: Mapping[str, Any], placement: Placement, tier: str, at: Path) -> None:
    """Terms are alternatives: the pod fits no node only if every term excludes the tier."""
    first: InvalidSpec | None = None
    for index, term in enumerate(_terms(pod_spec)):
        excluded = _excluding(term, placement)
        if excluded is None:
            return
        position, expression = excluded
        where = (*at, *_WHERE, index, "matchExpressions", position)
        requirement = f"{expression['operator']} {', '.join(expression.get('values') or ())}".rstrip()
        first = first or _conflict(placement, tier, expression["key"], requirement, where)
    if first is not None:
        raise first


def _excluding(term: Mapping[str, Any], placement: Placement) -> tuple[int, Mapping[str, Any]] | None:
    """The expression of this term that excludes all nodes of the tier."""
    wanted = [(key, (value,)) for key, value in placement.labels] + list(placement.one_of)
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or ()
        if operator == "In" and not any(placement.allowed(key, value) for value in values):
            return position, expression
        given = next((options for name, options in wanted if name == key), None)
        if given is None:
            continue
        if operator == "DoesNotExist" or (operator == "NotIn" and all(value in values for value in given)):
            return position, expression
    return None


def _require(pod_spec: dict[str, Any], expressions: list[dict[str, Any]]) -> None:
    """Add the expressions to each of the user's alternatives."""
    affinity = pod_spec.setdefault("affinity", {})
    required = affinity.setdefault("nodeAffinity", {}).setdefault(_WHERE[2], {})
    required[_WHERE[3]] = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *expressions]}
        for term in required.get(_WHERE[3]) or [{}]
    ]


def _conflict(placement: Placement, tier: str, key: str, requirement: str, at: Path) -> InvalidSpec:
    message = (
        f"requires {requirement}, but nodes of tier {tier} have {placement.values_of(key)}: remove it, the tier sets it"
    )
    return InvalidSpec(message, path=dotted(at))
