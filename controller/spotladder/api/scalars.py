"""What an unquoted YAML scalar means: the YAML 1.2 core schema, without the words on which YAML readers disagree.

`no`, `on`, `010` and `1_000` are text or numbers to one reader and booleans or other numbers to the next (kubectl
follows YAML 1.1 there). A file that means different things to different tools is refused, and told what to write.
Numbers are not repeated in messages: they may be somebody's secret.
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
    """The value of an unquoted scalar. Raises ValueError for one that YAML readers disagree about."""
    if text in _FIXED:
        return _FIXED[text]
    if (switch := _SWITCHES.get(text.lower())) and text in (text.lower(), text.upper(), text.capitalize()):
        raise ValueError(f'{text} is a boolean to some YAML readers and text to others: write {switch}, or "{text}"')
    if not text[0].isdigit() and text[0] not in "+-.":
        return text
    if len(text) > _LONGEST_NUMBER:
        return text
    if _LEADING_ZERO.fullmatch(text):
        raise ValueError("a number with a leading zero is octal to some YAML readers: write it without, or in quotes")
    if _UNDERSCORES.fullmatch(text):
        raise ValueError("digits with _ are a number only to some YAML readers: write them without, or in quotes")
    if _INTEGER.fullmatch(text):
        return int(text)
    if _RADIX.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
