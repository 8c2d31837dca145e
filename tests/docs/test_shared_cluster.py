"""The page about shared clusters has the ways that the tests try, and the fields of a rule."""

from __future__ import annotations

import re

from spotladder.api.tenancy import TenantRule
from tests.docs.markdown import ROOT
from tests.docs.test_conditions import section
from tests.ways import WAYS

PAGE = ROOT / "docs" / "shared-cluster.md"


def test_the_forty_ways_are_those_that_are_tried() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for when, at_admission in (("at submit", True), ("before a launch", False)):
        (listed,) = re.findall(rf"^- Refused {when}: (.+)\.$", page, re.MULTILINE)
        assert listed.split("; ") == [way.name for way in WAYS if way.at_admission is at_admission]


def test_all_fields_of_a_rule_are_described() -> None:
    table = section(PAGE, "What namespaces may use")
    described = {
        name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert described == {field.alias for field in TenantRule.model_fields.values()} - {"contact"}
    assert "contact:" in table
