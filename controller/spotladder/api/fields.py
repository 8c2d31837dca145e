"""Value types that several fields share, each with its validation, its error message and its JSON schema.

An error message follows the path of its field: `spec.grace: must not be negative`.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

from spotladder.api.problems import Path, dotted, quoted
from spotladder.api.suggest import closest
from spotladder.core.contract import VARIABLES, Variable
from spotladder.core.durations import format_duration, parse_duration
from spotladder.policies import registry

LONGEST_LABEL = 63
"""Maximum length of a Kubernetes label value, in characters, and of names that become label values."""

LONGEST_RAYJOB_NAME = 47
ATTEMPT_SUFFIX = "-a001"
LONGEST_JOB_NAME = LONGEST_RAYJOB_NAME - len(ATTEMPT_SUFFIX)

LARGEST_NUMBER = 2**31 - 1
"""Maximum of integer fields: the largest 32-bit integer, which all Kubernetes clients support."""

LONGEST_DURATION = 10 * 365 * 86_400
SHORTEST_DURATION = 0.001
"""Minimum of positive durations, in seconds. A shorter duration would be formatted as 0s."""

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)?")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_KEY = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

OWN_ENVIRONMENT = VARIABLES - {Variable.UID, Variable.CACHE, Variable.CACHE_SIZE, Variable.COMPILED}
"""Environment variables that a template must not set, because spotladder sets them for each attempt. The caches are not
among them: a template may name a volume of its own, and names the folder of compile caches."""


def refused(message: str) -> PydanticCustomError:
    """The error that a validator raises. Braces in the message are literal, not template fields."""
    return PydanticCustomError("spotladder", "{message}", {"message": message})


class Finding(NamedTuple):
    """An error in a field below the validated one. `at_key`: located at the field's name instead of its value."""

    path: Path
    message: str
    at_key: bool = False


def several(found: list[Finding]) -> PydanticCustomError:
    """The error that a validator raises for several findings; each is reported at its own location."""
    text = "; ".join(f"{dotted(finding.path)} {finding.message}" for finding in found)
    return PydanticCustomError("spotladder_several", "{text}", {"text": text, "found": found})


# --- durations, counts, money, time ----------------------------------------------------------------------------------


def _duration(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise refused("must be a duration like 90s, 10m or 1h30m")
    if not isinstance(value, str):
        if not math.isfinite(value):
            raise refused("must be a duration like 90s, 10m or 1h30m")
        if value < 0:
            raise refused("must not be negative")
        raise refused(f"needs a unit: write {value}s for seconds (or 10m, 1h30m)")
    try:
        seconds = parse_duration(value)
    except ValueError as error:
        message = str(error)
        raise refused(message if message.startswith("must") else f"{quoted(value)} {message}") from None
    if seconds > LONGEST_DURATION:
        raise refused(f"must be at most {LONGEST_DURATION // 3600}h (ten years)")
    return seconds


def positive_duration(value: Any) -> Any:
    """The seconds of a duration with a unit. Raises the validator's error if it is not one or not positive."""
    seconds = _duration(value)
    if seconds == 0:
        raise refused("must be more than 0s")
    if seconds < SHORTEST_DURATION:
        raise refused("must be more than 0s (at least 1ms)")
    return seconds


_DURATION_SCHEMA = {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|h|m|s))+$"}

Duration = Annotated[
    float,
    BeforeValidator(_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(_DURATION_SCHEMA),
]
"""Seconds in the model, `1h30m` in files."""

PositiveDuration = Annotated[
    float,
    BeforeValidator(positive_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(_DURATION_SCHEMA),
]


def _holdable(value: int) -> int:
    if abs(value) > LARGEST_NUMBER:
        raise refused(f"must be at {'most ' if value > 0 else 'least -'}{LARGEST_NUMBER}")
    return value


WholeNumber = Annotated[int, Strict(), AfterValidator(_holdable)]
Count = Annotated[int, Strict(), Field(ge=0), AfterValidator(_holdable)]
Switch = Annotated[bool, Strict()]


def _number(value: Any) -> Any:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip().removeprefix("-")):
            raise refused("must not be negative")
        text = str(value).strip().lstrip("$€").removesuffix("USD").strip().replace(",", ".")
        hint = f' like "{text}"' if _NUMBER.fullmatch(text) else ' like "0.42"'
        raise refused(f"must be a plain number{hint}")
    if value < 0:
        raise refused("must not be negative")
    if not math.isfinite(value):
        raise refused("must be finite")
    return float(value)


def plain_number(value: float) -> str:
    """A number with at most ten decimals, without an exponent."""
    return f"{value:.10f}".rstrip("0").rstrip(".")


Usd = Annotated[
    float,
    BeforeValidator(_number),
    PlainSerializer(plain_number, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"}),
]
"""US dollars: a decimal string in Kubernetes objects (they have no floats), numbers are accepted, too."""


def _above_zero(value: float) -> float:
    if value == 0:
        raise refused("must be more than 0: increase it, or remove the field")
    return value


Budget = Annotated[Usd, AfterValidator(_above_zero)]
"""The US dollars that something may cost."""

Rate = Annotated[float, BeforeValidator(_number)]


def _timestamp(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value  # from spotladder's own code; files and the API server contain text
    if isinstance(value, str) and _RFC3339.fullmatch(value):
        try:
            instant = datetime.fromisoformat(value.upper())
        except ValueError as error:
            raise refused(f"{quoted(value)} is not a date and time: {error}") from None
        if instant.tzinfo is None:
            raise refused(f"{quoted(value)} has no time zone: write {value.upper().replace(' ', 'T')}Z for UTC")
        return instant
    raise refused("must be a date and time with zone, like 2026-12-01T00:00:00Z")


def _rfc3339(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


Timestamp = Annotated[
    datetime,
    BeforeValidator(_timestamp),
    PlainSerializer(_rfc3339, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


# --- names -----------------------------------------------------------------------------------------------------------


def checked_text(value: Any) -> str:
    """The value, which must be text. Raises the validator's error otherwise."""
    if isinstance(value, str):
        return value
    if value is None:
        raise refused("has no value: write a name")
    if isinstance(value, bool | int | float):
        raise refused(f'must be text: write it in quotes, "{str(value).lower()}"')
    raise refused("must be a name")


def _name(value: Any, longest: int, why: str, *, letter_first: bool = False) -> str:
    name = checked_text(value)
    if not name:
        raise refused("must not be empty")
    first, ends = ("[a-z]", "beginning with a letter") if letter_first else ("[a-z0-9]", "no '-' at the ends")
    if not re.fullmatch(rf"{first}(?:[-a-z0-9]*[a-z0-9])?", name):
        meant = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:longest].strip("-")
        meant = meant.lstrip("0123456789-") if letter_first else meant
        hint = f'; for example "{meant}"' if meant else ""
        raise refused(f"{quoted(name)} is not a valid name: use lower-case letters, digits and '-', {ends}{hint}")
    if len(name) > longest:
        raise refused(f"has {len(name)} characters, but the maximum is {longest}{why}")
    return name


def _label_name(value: Any) -> str:
    return _name(value, LONGEST_LABEL, " (it becomes a Kubernetes label)")


def _job_name(value: Any) -> str:
    why = f" (a RayJob's name has {LONGEST_RAYJOB_NAME}, including {ATTEMPT_SUFFIX} for the attempt)"
    return _name(value, LONGEST_JOB_NAME, why, letter_first=True)


Name = Annotated[
    str,
    BeforeValidator(_label_name),
    WithJsonSchema({"type": "string", "maxLength": LONGEST_LABEL, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}),
]
JobName = Annotated[
    str,
    BeforeValidator(_job_name),
    WithJsonSchema({"type": "string", "maxLength": LONGEST_JOB_NAME, "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"}),
]


def _matching(pattern: re.Pattern[str], otherwise: str) -> BeforeValidator:
    """A validator of text of this form. The error quotes other text, and says what `otherwise` says."""

    def check(value: Any) -> str:
        text = checked_text(value)
        if not pattern.fullmatch(text):
            raise refused(f"{quoted(text)} {otherwise}")
        return text

    return BeforeValidator(check)


LabelValue = Annotated[
    str,
    _matching(
        _LABEL_VALUE,
        f"is not a valid label value: use at most {LONGEST_LABEL} letters, digits, '-', '_' and '.', beginning and "
        "ending with a letter or digit",
    ),
]
LabelKey = Annotated[
    str,
    _matching(_LABEL_KEY, "is not a valid label name: write team or example.com/team, at most 63 characters after '/'"),
]
SecretName = Annotated[
    str, _matching(_SUBDOMAIN, "is not a valid Secret name: use lower-case letters, digits, '-' and '.'")
]


def _not_our_own(name: str) -> str:
    if name in OWN_ENVIRONMENT:
        raise refused(f"{name} is set by spotladder for each attempt; remove it")
    return name


EnvironmentName = Annotated[
    str,
    AfterValidator(_not_our_own),
    _matching(_ENVIRONMENT_NAME, "is not a valid name of an environment variable: use letters, digits and '_'"),
]

PrivateText = str
"""Text that error messages never contain, because it may be a secret: no validator quotes it."""


def filled_text(value: Any) -> str:
    """The value, which must be text that is not empty. Raises the validator's error otherwise."""
    text = checked_text(value)
    if not text.strip():
        raise refused("must not be empty")
    return text


FilledText = Annotated[str, BeforeValidator(filled_text)]


def _quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise refused("must be an amount like 4, 500m or 16Gi")
    if not re.fullmatch(r"[0-9]+(?:\.[0-9]+)?(?:m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi|e[0-9]{1,2})?", str(value)):
        raise refused(f"{quoted(value)} is not an amount: write one like 4, 500m or 16Gi")
    return str(value)


Quantity = Annotated[str, BeforeValidator(_quantity), WithJsonSchema({"x-kubernetes-int-or-string": True})]
"""A Kubernetes resource quantity (CPU, memory, devices)."""


# --- policies --------------------------------------------------------------------------------------------------------


def _policy_name(value: Any) -> str:
    name = filled_text(value)
    known = registry.names()
    if name in known:
        return name
    near = closest(name, known, cutoff=0.8)
    more = "(install another policy on this machine and in the controller's image)"
    hint = f"did you mean {near}?" if near else f"installed here: {', '.join(known)} {more}"
    raise refused(f"{quoted(name)} is not an installed policy; {hint}")


PolicyName = Annotated[str, BeforeValidator(_policy_name)]
"""The name of a policy that is installed on this machine. The controller also rejects unknown names."""


# --- choices ---------------------------------------------------------------------------------------------------------


def choice(kind: type[StrEnum]) -> BeforeValidator:
    """A validator that accepts the enum's values. The error for a misspelt value suggests the closest one."""

    def check(value: Any) -> Any:
        values = [str(member) for member in kind]
        if isinstance(value, kind) or (isinstance(value, str) and value in values):
            return value
        near = closest(value, values) if isinstance(value, str) else None
        hint = f"; did you mean {near}?" if near else ""
        raise refused(f"{quoted(value)} is not one of {', '.join(values)}{hint}")

    return BeforeValidator(check)


def inner_type(annotation: Any) -> Any:
    """The annotation without `Annotated` and `| None`."""
    while True:
        arguments = get_args(annotation)
        if hasattr(annotation, "__metadata__"):
            annotation = arguments[0]
        elif type(None) in arguments:
            annotation = next(argument for argument in arguments if argument is not type(None))
        else:
            return annotation
