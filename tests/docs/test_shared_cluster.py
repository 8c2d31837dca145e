"""The page about shared clusters describes the fields of a rule."""

from __future__ import annotations

import re

from spotladder.api.tenancy import TenantRule
from tests.docs.markdown import ROOT
from tests.docs.test_conditions import section

PAGE = ROOT / "docs" / "shared-cluster.md"


def test_all_fields_of_a_rule_are_described() -> None:
    listed = section(PAGE, "What namespaces may use")
    described = {
        name for row in re.findall(r"^- (`.+?): ", listed, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert described == {field.alias for field in TenantRule.model_fields.values()} - {"contact"}
    assert "contact:" in listed
