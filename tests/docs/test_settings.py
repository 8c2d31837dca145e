"""The page of settings, metrics and variables matches the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

from spotladder.api.fields import OWN_ENVIRONMENT
from spotladder.api.trace import read_trace
from spotladder.local.pools import Window, windows_of
from spotladder.operator.settings import Settings
from tests.docs.markdown import ROOT, blocks
from tests.docs.test_conditions import section

PAGE = ROOT / "docs" / "settings.md"
SOURCE = ROOT / "controller" / "spotladder"


def test_every_setting_of_the_controller_is_documented() -> None:
    wanted = []
    for field in Settings.model_fields.values():
        default = field.get_default(call_default_factory=True)
        shown = f" (`{default}`)" if default not in (None, (), {}) else ""
        wanted.append(f"- `{field.alias}`{shown}: {field.description}")
    assert [line for line in section(PAGE, "The controller").splitlines() if line.startswith("- ")] == wanted


def test_every_variable_is_documented() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    named = set(re.findall(r"SPOTLADDER_[A-Z_]*[A-Z]", text))
    assert set(re.findall(r"`(SPOTLADDER_\w+)`", section(PAGE, "Variables"))) == named


def test_a_job_accepts_the_variables_that_users_may_set() -> None:
    settable, _, _ = section(PAGE, "Variables").partition("A program may read these")
    assert not OWN_ENVIRONMENT & set(re.findall(r"`(SPOTLADDER_\w+)`", settable))


def test_the_example_trace_is_valid(tmp_path: Path) -> None:
    (block,) = [block for block in blocks("json") if block.page == ROOT / "docs" / "quickstart.md"]
    (tmp_path / "trace.json").write_text(block.text, encoding="utf-8")
    gap = json.loads(block.text)["metadata"]["gap_seconds"]
    assert windows_of(read_trace(tmp_path / "trace.json"), 10.0) == (Window(2 * gap / 10, 4 * gap / 10),)
