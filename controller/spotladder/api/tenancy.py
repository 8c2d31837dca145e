"""What namespaces may use: the administrator's rules, the value `tenancy` of the chart.

A rule names namespaces, not labels of namespaces: an admission policy and the controller decide by the same text, and
the permission to label a namespace gives no other permission.

Rules add up. For each field, a namespace may use the union of the values that its rules list; if none of them has the
field, the default of the field applies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from spotladder.api.address import ANY, Endpoint, StoreAddress
from spotladder.api.capacitytier import HOME
from spotladder.api.record import Record
from spotladder.errors import InvalidSpec

_NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


def _namespace(name: str) -> str:
    if name != ANY and not _NAMESPACE.fullmatch(name):
        raise ValueError(f"{name!r} is not a namespace: write a name, or {ANY!r} for all")
    return name


def _parsed(parse: Callable[[str], object], text: Any) -> object:
    try:
        return parse(text) if isinstance(text, str) else text
    except InvalidSpec as error:
        raise ValueError(error.message if text in error.message else f"{text!r} {error.message}") from None


Names = tuple[str, ...]
_Uri = Annotated[StoreAddress, BeforeValidator(partial(_parsed, partial(StoreAddress.parse, pattern=True)))]
_Endpoint = Annotated[Endpoint, BeforeValidator(partial(_parsed, partial(Endpoint.parse, pattern=True)))]


class TenantRule(Record):
    """What the jobs of some namespaces may use."""

    model_config = ConfigDict(populate_by_name=True, arbitrary_types_allowed=True)

    namespaces: tuple[Annotated[str, AfterValidator(_namespace)], ...] = Field(
        min_length=1, description='Namespaces to which the rule applies; "*" means all.'
    )
    contact: str = Field(default="", description="Whom a user asks for more.")
    capacity_tiers: Names | None = Field(default=None, description="CapacityTiers. Default: all.")
    clusters: Names | None = Field(default=None, description="Clusters of the tiers. Default: home.")
    priority_classes: Names | None = Field(
        default=None, description="Priority classes of pods and of Kueue. Default: none; never those of the system."
    )
    service_accounts: Names | None = Field(
        default=None, description="Service accounts of the pods. Default: all of the namespace."
    )
    tolerations: Names | None = Field(
        default=None, description="Keys of tolerations in templates. Default: all but those of system nodes."
    )
    uris: tuple[_Uri, ...] | None = Field(
        default=None,
        description="Addresses at or below which checkpoints are allowed, with a Secret or with the controller's "
        "identity. Default: all, with the credentials of a Secret.",
    )
    endpoints: tuple[_Endpoint, ...] | None = Field(
        default=None, description="Endpoints that Secrets may have. Default: those of the clouds' own stores."
    )
    efa: bool = Field(
        default=False, description="Allow hostNetwork and IPC_LOCK, which EFA needs, in namespaces without a label."
    )
    ray_autoscaling: bool = Field(
        default=False, description="Allow enableInTreeAutoscaling: the head may change RayClusters of the namespace."
    )

    monthly_budget: float | None = Field(
        default=None, gt=0, description="USD that the jobs may cost within 30 days. Default: no limit."
    )

    def applies_to(self, namespace: str) -> bool:
        """Whether the rule names this namespace."""
        return ANY in self.namespaces or namespace in self.namespaces


DEFAULTS: dict[str, Names] = {
    "capacityTiers": (ANY,),
    "clusters": (HOME,),
    "priorityClasses": (),
    "serviceAccounts": (ANY,),
}
"""The values that a namespace may use if no rule for it has the field. `tolerations` lists forbidden values."""

SYSTEM_KEYS = re.compile(r"node-role\.kubernetes\.io/.*|CriticalAddonsOnly")
"""The keys of taints that keep jobs away from system nodes."""


def rules_for(rules: Iterable[TenantRule], namespace: str) -> tuple[TenantRule, ...]:
    """The rules that apply to a namespace."""
    return tuple(rule for rule in rules if rule.applies_to(namespace))


def listed(mine: Iterable[TenantRule], field: str) -> tuple[Any, ...] | None:
    """What these rules list for a field (its name in Python); None if none of them has it."""
    found = [entries for rule in mine if (entries := getattr(rule, field)) is not None]
    return tuple(dict.fromkeys(entry for entries in found for entry in entries)) if found else None


def budget_of(mine: Iterable[TenantRule]) -> float | None:
    """The USD that the jobs of the namespace of these rules may cost within 30 days: the highest of the rules that name
    it, or else of those for all. None: no limit."""
    having = [rule for rule in mine if rule.monthly_budget is not None]
    own = [rule for rule in having if ANY not in rule.namespaces] or having
    return max((rule.monthly_budget or 0.0 for rule in own), default=None)


def whom(mine: Sequence[TenantRule]) -> str:
    """The contact for users of the namespace: that of the rule that names it, or of the rule for all."""
    own = sorted((rule for rule in mine if rule.contact), key=lambda rule: ANY in rule.namespaces)
    return own[0].contact if own else "the administrator"
