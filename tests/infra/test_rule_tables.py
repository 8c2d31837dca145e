"""The values of all stacks are in the tables of tflint's rule sets for AWS and Google Cloud: enumerations, patterns and
lengths of arguments, and machine types. The tables are Go sources, so this needs neither tflint nor a built rule set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from spotladder_infra.facts import instances
from tests.infra.gomodule import module
from tests.infra.test_upstream import values_of

RULE_SETS = {"aws": "0.48.0", "google": "0.39.0"}
"""The versions of the rule sets."""

ARGUMENT = re.compile(r'resourceType: +"(\w+)",\s+attributeName: +"(\w+)"')
ENUMERATION = re.compile(r"(?:enum: |StringInSlice\()\[\]string\{(.*?)\}", re.DOTALL)
PATTERN = re.compile(r"pattern: +regexp\.MustCompile\(`(.*)`\)")
LENGTH = re.compile(r"(max|min): +(\d+)")
TEXT = re.compile(r'"([^"]*)"')


@dataclass(frozen=True)
class Rule:
    """The values that an argument may have."""

    enumeration: frozenset[str]
    pattern: str
    lengths: dict[str, int]

    def allows(self, value: str) -> bool:
        listed = not self.enumeration or value in self.enumeration
        fits = self.lengths.get("min", 0) <= len(value) <= self.lengths.get("max", len(value))
        return listed and fits and re.search(self.pattern, value) is not None


def rule_set(cloud: str) -> Path:
    return module(f"github.com/terraform-linters/tflint-ruleset-{cloud}", f"v{RULE_SETS[cloud]}") / "rules"


@cache
def rules() -> dict[tuple[str, str], Rule]:
    """By type of resource and argument."""
    found = {}
    for file in (*(rule_set("aws") / "models").glob("*.go"), *(rule_set("google") / "magicmodules").glob("*.go")):
        text = file.read_text()
        if argument := ARGUMENT.search(text):
            listed, pattern = ENUMERATION.search(text), PATTERN.search(text)
            found[argument[1], argument[2]] = Rule(
                frozenset(TEXT.findall(listed[1]) if listed else ()),
                re.sub(r"\\x\{(\w+)\}", lambda code: f"\\U{code[1]:0>8}", pattern[1] if pattern else ""),
                {name: int(number) for name, number in LENGTH.findall(text)},
            )
    return found


@cache
def machine_types() -> frozenset[str]:
    """Those of Google Cloud."""
    return frozenset(re.findall(r'"([a-z0-9-]+)": +true', (rule_set("google") / "utils.go").read_text()))


def refused(stack: dict[str, Any]) -> Iterator[str]:
    """The literal values of a stack, given as its `cdk.tf.json`, that a table does not have."""
    for kind, entries in stack["resource"].items():
        for body in entries.values():
            for name, value in body.items():
                rule = rules().get((kind, name))
                if rule and isinstance(value, str) and "${" not in value and not rule.allows(value):
                    yield f"{kind}.{name}: {value}"
    yield from (f"machine_type: {name}" for name in set(values_of(stack, "machine_type")) - machine_types())


def test_all_values_are_in_the_tables(stacks: dict[str, Path], optional_stacks: dict[str, Path]) -> None:
    assert len(rules()) > 1500
    for folder in (*stacks.values(), *optional_stacks.values()):
        assert list(refused(json.loads((folder / "cdk.tf.json").read_text()))) == []


@pytest.mark.parametrize(
    ("cluster", "right", "wrong"),
    [("east", "AL2023_x86_64_STANDARD", "AL2023_STANDARD"), ("west", "e2-standard-4", "e2-standard-5")],
)
def test_a_wrong_value_is_refused(cluster: str, right: str, wrong: str, configuration: dict[str, Any]) -> None:
    found = list(refused(json.loads(json.dumps(configuration[cluster]).replace(right, wrong))))
    assert found
    assert all(entry.endswith(f": {wrong}") for entry in found)


def test_the_sizes_of_google_cloud_are_machine_types() -> None:
    named = {name for family in instances.FAMILIES["gcp"] for name in instances.types_of("gcp", family)}
    assert named - machine_types() == {"ct5p-hightpu-1t", "ct5p-hightpu-2t"}, "which Google's Cluster Toolkit has"
