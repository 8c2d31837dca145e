"""The published JSON schema accepts the files that the models accept, and refuses the same malformed values."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from spotladder_infra.topology.cluster import Api, Cluster
from spotladder_infra.topology.fleet import Bucket, Fleet, FleetSpec, Team
from spotladder_infra.topology.network import Network
from spotladder_infra.topology.pool import Disruption, Pool, PoolLimits, Reservation
from spotladder_infra.topology.schema import schema
from tests.topology.builders import FLEET

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet"


SCHEMA = schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def load(text: str) -> object:
    return YAML(typ="safe").load(text)


def test_a_right_fleet() -> None:
    VALIDATOR.check_schema(SCHEMA)
    VALIDATOR.validate(load(FLEET))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cloud: kind", "cloud: azure"),
        ("home: east", "hom: east"),
        ("cidr: 10.0.0.0/16", "cidr: wide"),
        ("  home: east\n", ""),
    ],
)
def test_a_wrong_one(old: str, new: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(load(FLEET.replace(old, new, 1)))


def test_the_schema_beside_the_example_is_the_one_of_the_models() -> None:
    """`make schema` writes it. Editors find it by the first line of the example."""
    assert json.loads((EXAMPLE / "fleet.schema.json").read_text(encoding="utf-8")) == SCHEMA
    first = (EXAMPLE / "fleet.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=fleet.schema.json"
    for example in EXAMPLE.glob("*.yaml"):
        VALIDATOR.validate(load(example.read_text(encoding="utf-8")))


def test_every_field_has_a_description() -> None:
    for model in (Fleet, FleetSpec, Cluster, Network, Api, Pool, PoolLimits, Disruption, Reservation, Bucket, Team):
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"
