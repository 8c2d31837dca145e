"""Generates the CustomResourceDefinitions from the models, so that the API server validates what the models validate.

The structural schemas have descriptions, defaults and bounds; CEL rules express the remaining constraints. The API
server limits the estimated cost of CEL rules by the largest possible object, so every list and text of a spec has a
bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.fields import LONGEST_JOB_NAME, LONGEST_LABEL
from spotladder.api.record import Record
from spotladder.api.status import CapacityTierStatus, TieredJobStatus
from spotladder.api.tieredjob import TieredJob
from spotladder.api.workload_kinds import KINDS, enumerated

GROUP = "spotladder.io"
VERSION = "v1alpha1"

MAX_ITEMS = 64
MAX_PROPERTIES = 256
LONGEST_TEXT = 1024
LONGEST_VALUE = 32768
"""Maximum length of a value in a map (an environment variable, an annotation), in characters."""

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of `kubectl get`. A column with priority 1 is shown only with `-o wide`."""

    name: str
    path: str
    kind: str = "string"
    priority: int = 0

    def rendered(self) -> dict[str, Any]:
        column: dict[str, Any] = {"name": self.name, "type": self.kind, "jsonPath": self.path}
        return {**column, "priority": self.priority} if self.priority else column


@dataclass(frozen=True, slots=True)
class _Rule:
    """A CEL rule at a path in the object: `spec.workload`, `spec.tiers[]`; "" is the object itself.

    `field` is the field that the error names, below that path. Without it the API server calls the object `<nil>`.
    """

    at: str
    rule: str
    message: str
    field: str = ""


_AGE = _Column("Age", ".metadata.creationTimestamp", "date")

_JOB_COLUMNS = (
    _Column("Phase", ".status.phase"),
    _Column("Tier", ".status.tier"),
    _Column("Attempt", ".status.attempt", "integer"),
    _Column("Failures", ".status.failures", "integer"),
    _Column("Progress", ".status.progress.text"),
    _Column("Cost", ".status.cost.spent"),
    _Column("Saved", ".status.cost.savingsPercent"),
    _AGE,
    _Column("Message", ".status.message", priority=1),
)

_TIER_COLUMNS = (
    _Column("Type", ".spec.capacityType"),
    _Column("Provider", ".spec.provider"),
    _Column("Cluster", ".spec.cluster"),
    _Column("Price", ".spec.price.perNodeHour"),
    _Column("Available", '.status.conditions[?(@.type=="Available")].status'),
    _Column("Nodes", ".status.nodesInUse", "integer"),
    _AGE,
    _Column("Region", ".spec.region", priority=1),
    _Column("Had", ".status.lastAvailableAt", "date", priority=1),
)


def _workload_rules() -> tuple[_Rule, _Rule]:
    """The rules of `spec.workload`: exactly one field, the same for the life of the job."""
    has = [f"has(self.{kind.alias})" for kind in KINDS]
    one = " != ".join(has) if len(has) == 2 else f"[{', '.join(has)}].filter(given, given).size() == 1"
    same = " && ".join(f"has(self.{kind.alias}) == has(oldSelf.{kind.alias})" for kind in KINDS[:-1])
    first, *others = (kind.alias for kind in KINDS)
    return (
        _Rule("spec.workload", one, f"needs exactly one of {enumerated()}"),
        _Rule("spec.workload", same, f"cannot change from {first} to {' or '.join(others)} or back"),
    )


_LEFT = "u.name == t.name && u.name != oldSelf.status.tier && has(u.attempts) && u.attempts > 0"

_JOB_RULES = (
    _Rule(
        "",
        f"size(self.metadata.name) <= {LONGEST_JOB_NAME}",
        f"the job's name must have at most {LONGEST_JOB_NAME} characters, because RayJob names are derived from it",
    ),
    _Rule(
        "",
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "the job's name must have only lower-case letters, digits and '-' and begin with a letter, like a Service name",
    ),
    _Rule(
        "",
        "!has(oldSelf.status) || !has(oldSelf.status.tiers) || !has(oldSelf.status.tier) || "
        f"oldSelf.spec.tiers.all(t, !oldSelf.status.tiers.exists(u, {_LEFT}) || "
        "self.spec.tiers.exists(s, s.name == t.name && s.capacityTier == t.capacityTier))",
        "a tier that the job has left cannot be removed, renamed or given other capacity, because the history and cost "
        "of the job refer to it: keep its entry, and add other tiers under new names",
        field=".spec.tiers",
    ),
    *_workload_rules(),
    _Rule(
        "spec.overlap",
        "!has(self.hedgeAfter) || has(self.budget)",
        "hedgeAfter needs budget, which limits what the second attempts cost",
    ),
    _Rule(
        "spec.checkpoints.uri",
        "self == oldSelf",
        "cannot change: the job resumes from this address; create a new job for another address",
    ),
)

_TIER_RULES = (
    _Rule("spec.price", "has(self.perNodeHour) != has(self.source)", "needs exactly one of perNodeHour and source"),
    _Rule(
        "spec.price",
        "has(self.table) == (has(self.source) && self.source == 'gcp')",
        "table is required with source gcp and not allowed otherwise",
    ),
    _Rule(
        "",
        f"size(self.metadata.name) <= {LONGEST_LABEL} && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        f"the name must have at most {LONGEST_LABEL} lower-case letters, digits and '-', because it becomes a label",
    ),
)


def crds() -> list[dict[str, Any]]:
    """Both definitions as plain data for YAML."""
    return [
        _definition(
            TieredJob, TieredJobStatus, plural="tieredjobs", short="tj", scope="Namespaced", categories=["all"],
            columns=_JOB_COLUMNS, rules=_JOB_RULES,
        ),
        _definition(
            CapacityTier, CapacityTierStatus, plural="capacitytiers", short="ct", scope="Cluster", categories=[],
            columns=_TIER_COLUMNS, rules=_TIER_RULES,
        ),
    ]  # fmt: skip


def _definition(
    model: type[Record],
    status: type[Record],
    *,
    plural: str,
    short: str,
    scope: str,
    categories: list[str],
    columns: tuple[_Column, ...],
    rules: tuple[_Rule, ...],
) -> dict[str, Any]:
    kind = model.__name__
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            # Without this, `helm uninstall` would delete the definitions and with them every job.
            "annotations": {"helm.sh/resource-policy": "keep"},
            "labels": {"app.kubernetes.io/part-of": "spotladder"},
        },
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short],
                "categories": ["spotladder", *categories],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [column.rendered() for column in columns],
                    "schema": {"openAPIV3Schema": _object_schema(model, status, rules)},
                }
            ],
        },
    }


def _object_schema(model: type[Record], status: type[Record], rules: tuple[_Rule, ...]) -> Schema:
    generated = _schema_of(model)
    properties = generated["properties"]
    # Only the controller writes it: an owner for each field would take CPU time of the API server.
    written = {**_merged_by_key(_without_defaults(_schema_of(status))), "x-kubernetes-map-type": "atomic"}
    if "observedGeneration" in written["properties"]:
        # Without a status, tools that know kstatus take an object that no controller has seen for ready.
        written["default"] = {"observedGeneration": -1}
    schema: Schema = {
        "description": generated["description"],
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _merged_by_key(_bounded(properties["spec"])),
            "status": written,
        },
    }
    for rule in rules:
        place = _at(schema, rule.at)
        place.setdefault("x-kubernetes-validations", []).append(_rendered(rule))
    return schema


def _rendered(rule: _Rule) -> Schema:
    rendered = {"rule": rule.rule, "message": rule.message}
    return {**rendered, "fieldPath": rule.field} if rule.field else rendered


def _at(schema: Schema, path: str) -> Schema:
    for name in path.split(".") if path else ():
        schema = schema["properties"][name]
    return schema


# --- from pydantic's JSON schema to a structural one -----------------------------------------------------------------


def _schema_of(model: type[Record]) -> Schema:
    # The serialization schema: its defaults are `90s` instead of the model's seconds.
    source = model.model_json_schema(by_alias=True, mode="serialization")
    return _structural(source, source.get("$defs", {}))


_KEPT = ("description", "type", "format", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems",
         "maxItems", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string")  # fmt: skip


def _structural(source: Schema, definitions: dict[str, Schema]) -> Schema:
    """The schema without references, nulls, titles and unions, which structural schemas do not allow."""
    if "$ref" in source:
        target = definitions[source["$ref"].rpartition("/")[2]]
        source = {**target, **{key: value for key, value in source.items() if key != "$ref"}}
    if "anyOf" in source:
        only = next(option for option in source["anyOf"] if option.get("type") != "null")
        return _structural({**only, **{key: value for key, value in source.items() if key != "anyOf"}}, definitions)
    schema: Schema = {key: source[key] for key in _KEPT if key in source}
    if source.get("default") is not None:
        schema["default"] = source["default"]
    if "properties" in source:
        schema["properties"] = {name: _structural(inner, definitions) for name, inner in source["properties"].items()}
        if required := source.get("required"):
            schema["required"] = list(required)
    elif isinstance(source.get("additionalProperties"), dict):
        schema["additionalProperties"] = _structural(source["additionalProperties"], definitions)
    if "items" in source:
        schema["items"] = _structural(source["items"], definitions)
    return schema


def _bounded(schema: Schema) -> Schema:
    """The schema with default bounds. Only for specs: a status must not become too long to be stored."""
    kind = schema.get("type")
    if kind == "string" and not schema.keys() & {"maxLength", "enum", "format"}:
        schema["maxLength"] = LONGEST_TEXT
    elif kind == "array":
        schema.setdefault("maxItems", MAX_ITEMS)
    elif "additionalProperties" in schema:
        schema["maxProperties"] = MAX_PROPERTIES
        value = schema["additionalProperties"]
        if value.get("type") == "string":
            value.setdefault("maxLength", LONGEST_VALUE)
    for inner in _inside(schema):
        _bounded(inner)
    return schema


def _merged_by_key(schema: Schema) -> Schema:
    """The schema with list map keys, which make entries unique and let several field managers own entries of one
    list."""
    if schema.get("type") == "array":
        required = schema["items"].get("required", ())
        keys = next((keys for keys in (("kind", "name"), ("name",), ("type",)) if set(keys) <= set(required)), None)
        if keys is not None:
            schema.update({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})
    for inner in _inside(schema):
        _merged_by_key(inner)
    return schema


def _without_defaults(schema: Schema) -> Schema:
    """The schema without defaults, for the status: a missing field is unknown."""
    schema.pop("default", None)
    for inner in _inside(schema):
        _without_defaults(inner)
    return schema


def _inside(schema: Schema) -> list[Schema]:
    return [
        *schema.get("properties", {}).values(),
        *(schema[key] for key in ("items", "additionalProperties") if key in schema),
    ]
