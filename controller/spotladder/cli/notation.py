"""The help of commands in kubectl's notation: FILE, NUMBER and NAME instead of the types of the option library."""

from __future__ import annotations

from typing import Any

from typer.core import TyperArgument, TyperOption

_METAVARS = {"dir": "DIR", "path": "FILE", "file": "FILE"}
"""The placeholder for a path, by the option library's name of its type."""


def _range(minimum: float | None, maximum: float | None) -> str | None:
    least, most = (None if limit is None else f"{limit:.10g}" for limit in (minimum, maximum))
    if least is None or most is None:
        return f"{least} or more" if least else most and f"{most} or less"
    return f"{least} to {most}"


class _Argument(TyperArgument):
    """An argument such as FILE..., without braces and Python types."""

    def _usage_display_name(self) -> str:
        name = self.display_name_raw.removesuffix("...") + ("..." if self.nargs != 1 else "")
        return name if self.required else f"[{name}]"

    def display_type_rich(self, ctx: Any) -> None:
        """Print no type: the name and the help text are sufficient."""


class _Option(TyperOption):
    """An option with a placeholder for its value: its metavar, its choices, FILE, DIR, NUMBER or NAME."""

    def display_type(self, ctx: Any) -> str:
        described = self.type_descriptor
        if described.is_choice:
            return super().display_type(ctx).strip("<>")
        if described.is_path:
            return _METAVARS[described.path_type]
        return "NUMBER" if described.annotation in (int, float) or described.is_ranged else "NAME"

    def _get_number_range_help_str(self) -> str | None:
        return _range(self.min, self.max)


def in_kubectl_notation(command: Any) -> Any:
    """The command, and all commands below it, with the help of their parameters in kubectl's notation."""
    for parameter in command.params:
        if isinstance(parameter, TyperArgument):
            parameter.__class__ = _Argument
        elif isinstance(parameter, TyperOption):
            parameter.__class__ = _Option
    for inner in getattr(command, "commands", {}).values():
        in_kubectl_notation(inner)
    return command
