"""The lists of the documentation have what the code has."""

from __future__ import annotations

import json
import re
from pathlib import Path

from spotladder.api.tenancy import TenantRule
from spotladder.api.trace import read_trace
from spotladder.cli import main
from spotladder.core.model import Phase
from spotladder.local.pools import Window, windows_of
from spotladder.operator.condition_types import ConditionReason, ConditionType
from spotladder.operator.reporting.metrics import Metrics
from spotladder.operator.settings import Settings
from spotladder.versions import OLDEST_RAY, SUPPORTED, TESTED_RAY
from tests.clusters.stepped_clock import SteppedClock
from tests.docs.markdown import ROOT, blocks

OF_A_TIER = {ConditionType.AVAILABLE, ConditionType.PRICED}


def section(page: Path, heading: str) -> str:
    return page.read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def explained_names(text: str) -> set[str]:
    """The names with which the entries of all lists begin."""
    return set(re.findall(r"^- `([A-Z]\w+)`: ", text, re.MULTILINE))


def test_all_phases_and_conditions_of_a_job_are_explained_and_no_others() -> None:
    explained = explained_names(section(ROOT / "docs" / "conditions.md", "Phases and conditions"))
    assert explained == {*Phase, *(set(ConditionType) - OF_A_TIER)}


def test_the_conditions_of_a_capacitytier_are_explained() -> None:
    explained = explained_names(section(ROOT / "docs" / "conditions.md", "CapacityTier status"))
    assert explained == {*OF_A_TIER, ConditionType.VALID}


def test_every_condition_reason_is_explained() -> None:
    page = ROOT / "docs" / "conditions.md"
    explained = re.findall(r"`(\w+)`", section(page, "Condition reasons") + section(page, "Impediments"))
    assert set(ConditionReason) - set(explained) == set()


def test_exit_codes_are_those_of_the_command() -> None:
    assert main.__doc__ is not None
    codes = re.findall(r"(?:^|· |: )(\d+) \w", main.__doc__.split("Exit codes")[1], re.MULTILINE)
    table = section(ROOT / "docs" / "conditions.md", "Exit codes")
    assert re.findall(r"^- `(\d+)`: ", table, re.MULTILINE) == codes


SETTINGS = ROOT / "docs" / "settings.md"
SOURCE = ROOT / "controller" / "spotladder"
COUNTED = {"counter": "_total"}


def test_every_setting_of_the_controller_is_documented() -> None:
    wanted = []
    for field in Settings.model_fields.values():
        default = field.get_default(call_default_factory=True)
        shown = f" (`{default}`)" if default not in (None, (), {}) else ""
        wanted.append(f"- `{field.alias}`{shown}: {field.description}")
    assert [line for line in section(SETTINGS, "The controller").splitlines() if line.startswith("- ")] == wanted


def test_every_metric_is_documented_with_its_labels() -> None:
    metrics = Metrics(SteppedClock())
    kept = [metric for metric in vars(metrics).values() if hasattr(metric, "_labelnames")]
    labels = {family.name: metric._labelnames for metric in kept for family in metric.collect()}
    labels |= {family.name: getattr(family, "_labelnames", ()) for family in metrics.collect()}
    wanted = {
        (f"`{family.name}{COUNTED.get(family.type, '')}`", family.type, ", ".join(labels[family.name]))
        for family in metrics.registry.collect()
    }
    listed = re.findall(r"^- (`\w+`) \((\w+)(?:; (.+?))?\): ", section(SETTINGS, "Metrics"), re.MULTILINE)
    documented = {(name, kind, said.replace("`", "")) for name, kind, said in listed}
    assert documented == wanted


def test_every_variable_is_documented() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    named = set(re.findall(r"SPOTLADDER_[A-Z_]*[A-Z]", text))
    assert set(re.findall(r"`(SPOTLADDER_\w+)`", section(SETTINGS, "Variables"))) == named


def test_the_example_trace_is_valid(tmp_path: Path) -> None:
    (block,) = [block for block in blocks("json") if block.page == ROOT / "docs" / "quickstart.md"]
    (tmp_path / "trace.json").write_text(block.text, encoding="utf-8")
    gap = json.loads(block.text)["metadata"]["gap_seconds"]
    assert windows_of(read_trace(tmp_path / "trace.json"), 10.0) == (Window(2 * gap / 10, 4 * gap / 10),)


def test_all_fields_of_a_rule_are_described() -> None:
    listed = section(ROOT / "docs" / "shared-cluster.md", "What namespaces may use")
    described = {
        name for row in re.findall(r"^- (`.+?): ", listed, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert described == {field.alias for field in TenantRule.model_fields.values()} - {"contact"}
    assert "contact:" in listed


def test_the_matrix_has_the_versions_of_the_code() -> None:
    page = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    cells = dict(re.findall(r"^\| (\w+) \| (.*) \|$", page, re.MULTILINE))
    minors = list(SUPPORTED)
    assert cells["Kubernetes"] == f"{minors[0]} to {minors[-1]}"
    assert cells["Ray"] == " to ".join(version.rpartition(".")[0] for version in TESTED_RAY)
    assert re.findall(r"1\.\d+", cells["KubeRay"].split("(")[0]) == list(OLDEST_RAY)
    assert re.findall(r"(1\.\d+)(?: or newer)? for (?:Kubernetes )?(1\.\d+)", cells["Karpenter"]) == [
        (entry.karpenter, entry.minor) for entry in SUPPORTED.values()
    ]
