"""Validates a document as a model and converts pydantic's errors into problems with their location."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from spotladder.api.document import Document
from spotladder.api.fields import inner_type
from spotladder.api.problems import InvalidDocument, Path, Problem, dotted, quoted
from spotladder.api.record import Record
from spotladder.api.suggest import closest

M = TypeVar("M", bound=Record)

_MESSAGES = {
    "bool_type": "must be true or false",
    "string_type": "must be text: write it in quotes",
    "list_type": 'must be a list: lines that begin with "- "',
    "dict_type": 'must be a mapping: lines of the form "name: value"',
    "model_type": 'must be a mapping: lines of the form "name: value"',
    "model_attributes_type": 'must be a mapping: lines of the form "name: value"',
}


def checked(document: Document, model: type[M], *, stored: bool = False) -> M:
    """The document as a model. Raises InvalidDocument with every problem found.

    `stored`: an object of the API server, which has only fields that the definition knows. An unknown one is of a newer
    definition, and is ignored: its default would otherwise stop every job of an older controller.
    """
    try:
        return model.model_validate(document.data, extra="ignore" if stored else None)
    except ValidationError as error:
        details = error.errors(include_url=False)
    problems = [problem for detail in details for problem in _problems(detail, document, model)]
    raise InvalidDocument(_worth_saying(problems)) from None


def _worth_saying(problems: list[Problem]) -> list[Problem]:
    """The problems in the order of the file, without "is required" for a field whose name is misspelt."""
    meant = {
        f"{problem.path.rpartition('.')[0]}.{problem.message.rpartition('did you mean ')[2].rstrip('?')}".lstrip(".")
        for problem in problems
        if "did you mean" in problem.message
    }
    kept = (problem for problem in problems if problem.path not in meant or " is required" not in f" {problem.message}")
    return sorted(kept, key=lambda problem: [int(part) for part in problem.where.split(":")[-2:] if part.isdigit()])


def _problems(detail: ErrorDetails, document: Document, model: type[Record]) -> Iterator[Problem]:
    path: Path = tuple(part for part in detail["loc"] if part != "[key]")
    if detail["type"] == "spotladder_several":
        for finding in detail["ctx"]["found"]:
            inner = (*path, *finding.path)
            yield Problem(document.where(inner, key=finding.at_key), dotted(inner), finding.message)
        return
    if detail["type"] == "extra_forbidden":
        yield Problem(document.where(path, key=True), dotted(path), _unknown_field(path, model))
        return
    on_key = "[key]" in detail["loc"]
    yield Problem(document.where(path, key=on_key), dotted(path), _message(detail, path, model))


def _message(detail: ErrorDetails, path: Path, model: type[Record]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        about = description(path, model)
        return f"is required: {about[0].lower()}{about[1:].rstrip('.')}" if about else "is required"
    if detail["input"] is None:
        return "has no value: write one, or remove the line"
    if kind == "spotladder":
        return str(context["message"])
    if kind == "literal_error":
        near = f"must be {str(context['expected']).replace(chr(39), '')}"
        return f"{near}, not {quoted(detail['input'])}" if isinstance(detail["input"], str) else near
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}, not {detail['input']}"
    if kind == "greater_than":
        return f"must be more than {context['gt']:g}"
    if kind == "less_than_equal":
        return f"must be at most {context['le']}, not {detail['input']}"
    if kind == "too_short":
        return "must have at least one entry"
    if kind == "too_long":
        return f"must have at most {context['max_length']} entries, not {context['actual_length']}"
    if kind == "int_type":
        return _no_whole_number(detail["input"])
    if kind in ("int_parsing", "int_from_float", "float_parsing"):
        return (
            f"must be a {'number' if kind == 'float_parsing' else 'whole number'}, not {quoted(str(detail['input']))}"
        )
    return _MESSAGES.get(kind) or detail["msg"].removeprefix("Value error, ")


def _no_whole_number(given: object) -> str:
    if not isinstance(given, str | float):
        return "must be a whole number"
    if isinstance(given, str) and given.strip().lstrip("+-").isdecimal():
        return "must be a whole number without quotes"
    return f"must be a whole number, not {quoted(str(given))}"


# --- known fields ----------------------------------------------------------------------------------------------------


def _unknown_field(path: Path, model: type[Record]) -> str:
    name = str(path[-1])
    around = _model_at(path[:-1], model)
    known = _names(around) if around else []
    elsewhere = {place.rpartition(".")[2].removesuffix("[]"): place for place in _places(model)}
    if len(longer := [field for field in known if field.lower().startswith(name.lower())]) == 1:
        return f"is not a known field; did you mean {longer[0]}?"
    near = closest(name, [*known, *elsewhere])
    if near in known:
        return f"is not a known field; did you mean {near}?"
    if near == name:
        return f"does not belong here; it is {elsewhere[name]}"
    if near and near == closest(name, elsewhere, cutoff=0.85):
        return f"is not a known field; did you mean {elsewhere[near]}?"
    if near := closest(name, known):
        return f"is not a known field; did you mean {near}?"
    return f"is not a known field; known here: {', '.join(known)}"


def description(path: Path, model: type[Record]) -> str:
    """The description of a field in the models; "" for an unknown field."""
    around = _model_at(path[:-1], model)
    if around is None:
        return ""
    return next((field.description or "" for field in around.model_fields.values() if field.alias == path[-1]), "")


def _names(model: type[Record]) -> list[str]:
    return [field.alias or "" for field in model.model_fields.values()]


def _model_at(path: Path, model: type[Record]) -> type[Record] | None:
    """The model that describes the mapping at this path."""
    annotation: Any = model
    for part in path:
        annotation = inner_type(annotation)
        if get_origin(annotation) in (list, tuple, dict):
            annotation = get_args(annotation)[1 if get_origin(annotation) is dict else 0]
        elif _is_model(annotation):
            fields = (field for field in annotation.model_fields.values() if field.alias == part)
            annotation = next((field.annotation for field in fields), None)
        else:
            return None
    annotation = inner_type(annotation)
    return annotation if _is_model(annotation) else None


def _places(model: type[Record], prefix: str = "") -> Iterator[str]:
    """The paths of all fields of a model and its nested models: `spec.tiers[].maxFailures`."""
    for field in model.model_fields.values():
        place = f"{prefix}{field.alias}"
        yield place
        annotation = inner_type(field.annotation)
        if get_origin(annotation) in (list, tuple):
            place, annotation = f"{place}[]", inner_type(get_args(annotation)[0])
        elif get_origin(annotation) is dict:
            place, annotation = f"{place}.<name>", inner_type(get_args(annotation)[-1])
        if _is_model(annotation):
            yield from _places(annotation, f"{place}.")


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Record)
