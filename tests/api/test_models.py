"""The models: descriptions, defaults and round trips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.fields import inner_type
from spotladder.api.tieredjob import TieredJob
from spotladder.api.world import World
from tests.api.builders import JOB, WORLD, said_about


def models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        annotation: Any = inner_type(field.annotation)
        while getattr(annotation, "__args__", None):
            annotation = inner_type(annotation.__args__[-1])
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from models(annotation)


ALL = sorted({found for top in (TieredJob, CapacityTier, World) for found in models(top)}, key=lambda m: m.__name__)


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.__name__)
def test_every_model_and_field_is_described(model: type[BaseModel]) -> None:
    assert model.__doc__
    assert model.__doc__.rstrip().endswith(".")
    for name, field in model.model_fields.items():
        assert field.description, f"{name} has no description"
        assert field.description.endswith("."), f"{name}: {field.description}"


def test_a_dumped_model_validates_again() -> None:
    from spotladder.api.document import documents_of

    for text, model in ((JOB, TieredJob), (WORLD, World)):
        first = model.model_validate(documents_of(text, "f")[0].data)
        again = model.model_validate(first.model_dump(by_alias=True, mode="json", exclude_none=True))
        assert again == first


TIER = """\
apiVersion: spotladder.io/v1alpha1
kind: CapacityTier
metadata: {name: g5-spot-use1a}
spec:
  capacityType: spot
  provider: aws
  cluster: east
  region: us-east-1
  zones: [us-east-1a]
  instanceTypes: [g5.xlarge]
  extraSelectors: {team: ml}
  extraTolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
  applyTo: Workers
  notice: 120s
  price: {perNodeHour: "0.42", onDemandPerNodeHour: "1.41"}
  egressPerGiB: "0.02"
"""


TIER_CASES = {
    'price: {perNodeHour: "0.42", source: aws}': "spec.price: needs exactly one of perNodeHour and source",
    "price: {source: gcp}": "spec.price: table is required with source gcp and not allowed otherwise",
    'price: {perNodeHour: "0,42"}': 'spec.price.perNodeHour: must be a plain number like "0.42"',
    'price: {perNodeHours: "0.42", perNodeHour: 1}': (
        "spec.price.perNodeHours: is not a known field; did you mean perNodeHour?"
    ),
}


@pytest.mark.parametrize("price", TIER_CASES)
def test_invalid_prices_of_a_capacity_tier_are_rejected(price: str) -> None:
    lines = said_about(TIER.replace('price: {perNodeHour: "0.42", onDemandPerNodeHour: "1.41"}', price), "tier.yaml")
    assert [line.split(": ", 1)[1] for line in lines] == [TIER_CASES[price]]


@pytest.mark.parametrize(
    ("toleration", "says"),
    [
        ("effect: NoSchedule", "needs a key"),
        ('key: gpu, operator: Exists, value: "true"', "has a value, which operator Exists does not compare"),
        ("key: gpu, tolerationSeconds: 30", "tolerationSeconds needs effect: NoExecute"),
    ],
)
def test_a_toleration_that_no_pod_may_have_is_rejected(toleration: str, says: str) -> None:
    text = TIER.replace("key: gpu, operator: Exists, effect: NoSchedule", toleration)
    (line,) = said_about(text, "tier.yaml")
    assert line.startswith(f"tier.yaml:12:22: spec.extraTolerations[0]: {says}")


def test_a_misspelt_capacity_type_is_rejected_with_a_suggestion() -> None:
    lines = said_about(TIER.replace("capacityType: spot", "capacityType: ondemand"), "tier.yaml")
    assert lines == [
        'tier.yaml:5:17: spec.capacityType: "ondemand" is not one of spot, on-demand, reserved; did you mean on-demand?'
    ]


NAME_CHARACTERS = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-_.ABCÄ ", max_size=70)


@given(NAME_CHARACTERS)
def test_a_suggested_name_is_valid(name: str) -> None:
    quoted = name.replace("'", "''")
    lines = said_about(JOB.replace("name: digits", f"name: '{quoted}'"))
    if lines and "for example" in lines[0]:
        suggestion = lines[0].rpartition('example "')[2].rstrip('"')
        assert said_about(JOB.replace("name: digits", f"name: '{suggestion}'")) == []
