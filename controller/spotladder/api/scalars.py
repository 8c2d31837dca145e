"""Values of unquoted YAML scalars: the YAML 1.2 core schema, without the words on which YAML parsers disagree.

Some parsers read `no`, `on`, `010` and `1_000` as text or numbers, others as booleans or different numbers (kubectl
follows YAML 1.1 here). This module rejects such scalars, and the error names the unambiguous spelling.
Errors do not repeat numbers, because a number may be a secret.
"""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

_FIXED: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_SWITCHES = {"y": "true", "yes": "true", "on": "true", "n": "false", "no": "false", "off": "false"}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_RADIX = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_UNDERSCORES = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?")
_LONGEST_NUMBER = 40


def meaning(text: str) -> Scalar:
    """The value of an unquoted scalar. Raises ValueError for a scalar on which YAML parsers disagree."""
    if text in _FIXED:
        return _FIXED[text]
    if (switch := _SWITCHES.get(text.lower())) and text in (text.lower(), text.upper(), text.capitalize()):
        raise ValueError(f'{text} is a boolean for some YAML parsers and text for others: write {switch}, or "{text}"')
    if not text[0].isdigit() and text[0] not in "+-.":
        return text
    if len(text) > _LONGEST_NUMBER:
        return text
    if _LEADING_ZERO.fullmatch(text):
        raise ValueError("a number with a leading zero is octal for some YAML parsers: remove the zero, or use quotes")
    if _UNDERSCORES.fullmatch(text):
        raise ValueError("digits with _ are a number only for some YAML parsers: remove the _, or use quotes")
    if _INTEGER.fullmatch(text):
        return int(text)
    if _RADIX.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
