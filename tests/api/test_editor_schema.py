"""The published JSON schema of job files accepts the examples, and refuses malformed ones."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from spotladder.api.editor_schema import schema

EXAMPLES = Path(__file__).parents[2] / "examples"
JOB = (EXAMPLES / "on-a-cluster" / "digits.yaml").read_text(encoding="utf-8")
VALIDATOR = jsonschema.Draft202012Validator(schema())


def documents(text: str) -> list[object]:
    return list(YAML(typ="safe", pure=True).load_all(text))


def test_every_example_is_right() -> None:
    VALIDATOR.check_schema(schema())
    files = [*EXAMPLES.glob("*/job*.yaml"), *(EXAMPLES / "on-a-cluster").glob("*.yaml")]
    assert len(files) > 8
    for file in files:
        for document in documents(file.read_text(encoding="utf-8")):
            VALIDATOR.validate(document)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kind: TieredJob", "kind: TierJob"),
        ("  tiers:", "  teirs:"),
        ("checkpoints:", "checkpoint:"),
    ],
)
def test_a_wrong_field_is_refused(old: str, new: str) -> None:
    assert old in JOB
    found = documents(JOB.replace(old, new, 1))
    assert not all(VALIDATOR.is_valid(document) for document in found)


def test_the_schema_beside_the_examples_is_the_one_of_the_models() -> None:
    """`make schema` writes it."""
    assert json.loads((EXAMPLES / "spotladder.schema.json").read_text(encoding="utf-8")) == schema()
