"""The CRDs match the models and are structural."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.check import checked
from spotladder.api.crds import crds
from spotladder.api.document import Document, documents_of
from spotladder.api.tieredjob import TieredJob
from spotladder.api.yaml_text import as_yaml
from spotladder.cli.main import main
from tests.api.builders import JOB

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "spotladder-crds" / "templates"
BY_NAME = {definition["spec"]["names"]["plural"]: definition for definition in crds()}


def schema_of(plural: str) -> dict[str, Any]:
    schema: dict[str, Any] = BY_NAME[plural]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def walk(schema: dict[str, Any], at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield at, schema
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, f"{at}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from walk(schema[key], f"{at}{mark}")


EVERYWHERE = [(plural + at, schema) for plural in BY_NAME for at, schema in walk(schema_of(plural))]


def test_the_chart_matches_the_models() -> None:
    files = {path.stem: path.read_text(encoding="utf-8") for path in CHART.glob("*.yaml")}
    assert files == {plural: as_yaml(definition) for plural, definition in BY_NAME.items()}, "run `make crds`"


def test_the_schema_is_structural() -> None:
    for at, schema in EVERYWHERE:
        assert not schema.keys() & {"$ref", "anyOf", "allOf", "title", "const", "exclusiveMinimum"}, at
        assert "type" in schema or schema.get("x-kubernetes-int-or-string"), at
        assert not ("properties" in schema and "additionalProperties" in schema), at


def test_every_spec_field_is_bounded() -> None:
    for at, schema in EVERYWHERE:
        if ".spec" not in at:
            continue
        if schema.get("type") == "string":
            assert schema.keys() & {"maxLength", "enum", "format"}, at
        if schema.get("type") == "array":
            assert "maxItems" in schema, at
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, at


def test_only_a_status_that_no_controller_has_written_has_a_default_and_the_stored_state_no_maximum_length() -> None:
    defaults = {at: schema["default"] for at, schema in EVERYWHERE if ".status" in at and "default" in schema}
    assert defaults == {"tieredjobs.status": {"observedGeneration": -1}}, "kstatus compares it with the generation"
    assert "maxLength" not in schema_of("tieredjobs")["properties"]["status"]["properties"]["state"]


def filled(schema: dict[str, Any], value: Any) -> Any:
    """The value with the defaults that the API server adds."""
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name, inner in known.items():
            if name not in value and "default" in inner:
                value[name] = deepcopy(inner["default"])
        inner_of = {name: known.get(name) or schema.get("additionalProperties") or {} for name in value}
        return {name: filled(inner_of[name], inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(schema.get("items") or {}, inner) for inner in value]
    return value


TIER = """\
apiVersion: spotladder.io/v1alpha1
kind: CapacityTier
metadata: {name: spot}
spec: {capacityType: spot, provider: aws, extraTolerations: [{key: gpu}], price: {perNodeHour: "1"}}
"""


@pytest.mark.parametrize(
    ("plural", "model", "text"), [("tieredjobs", TieredJob, JOB), ("capacitytiers", CapacityTier, TIER)]
)
def test_schema_defaults_equal_model_defaults(plural: str, model: type[TieredJob], text: str) -> None:
    (document,) = documents_of(text, "job.yaml")
    completed = filled(schema_of(plural), deepcopy(document.data))
    assert completed != document.data
    completed.pop("status", None)
    assert checked(Document("", completed, {}, {}), model) == checked(document, model)


def test_an_owner_is_recorded_for_the_status_as_a_whole() -> None:
    for definition in crds():
        (version,) = definition["spec"]["versions"]
        assert version["schema"]["openAPIV3Schema"]["properties"]["status"]["x-kubernetes-map-type"] == "atomic"


def test_the_printer_columns_refer_to_existing_fields() -> None:
    columns = BY_NAME["tieredjobs"]["spec"]["versions"][0]["additionalPrinterColumns"]
    headings = [column["name"].upper() for column in columns if not column.get("priority")]
    assert headings == ["PHASE", "TIER", "ATTEMPT", "FAILURES", "PROGRESS", "COST", "SAVED", "AGE"]
    for plural, definition in BY_NAME.items():
        for column in definition["spec"]["versions"][0]["additionalPrinterColumns"]:
            schema = schema_of(plural)
            for name in column["jsonPath"].split("[")[0].split(".")[1:]:
                if name == "metadata":
                    break
                schema = schema["properties"][name]
            else:
                kind = "date" if schema.get("format") == "date-time" else schema["type"]
                assert kind == (column["type"] if "[" not in column["jsonPath"] else "array"), column


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_crds_command_prints_all_definitions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds"]) == 0
    printed = list(YAML(typ="safe", pure=True).load_all(capsys.readouterr().out))
    assert printed == crds()


def test_the_crds_command_writes_one_file_per_definition(tmp_path: Path) -> None:
    assert main(["crds", "--to", str(tmp_path / "new")]) == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["capacitytiers.yaml", "tieredjobs.yaml"]


def test_the_crds_command_reports_a_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["crds", "--to", str(tmp_path / "file" / "below")]) == 5
    assert "cannot be written" in capsys.readouterr().err
