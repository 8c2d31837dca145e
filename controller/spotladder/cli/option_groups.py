"""Options that several commands share, declared once as the fields of a dataclass.

A command takes the dataclass as one parameter; on the command line, each field is an option.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints


def with_option_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with one parameter for each field of its parameters that are dataclasses."""
    declared = signature(command, eval_str=True)
    groups: dict[str, Any] = {
        parameter.name: parameter.annotation
        for parameter in declared.parameters.values()
        if is_dataclass(parameter.annotation)
    }
    if not groups:
        return command
    parameters: list[Parameter] = []
    for parameter in declared.parameters.values():
        group = groups.get(parameter.name)
        parameters += [parameter] if group is None else _options(group)

    @wraps(command)
    def expanded(*arguments: Any, **values: Any) -> Any:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        return command(*arguments, **values)

    expanded.__signature__ = declared.replace(parameters=parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def _options(group: Any) -> list[Parameter]:
    types = get_type_hints(group, include_extras=True)

    def option(field: Field[Any]) -> Parameter:
        return Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])

    return [option(field) for field in fields(group)]
