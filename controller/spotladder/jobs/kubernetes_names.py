"""Validates Kubernetes names before requests: an empty name would select all objects, and `..` another path."""

from __future__ import annotations

import re

from spotladder.errors import Refused

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_JOB = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_LONGEST = 253


def job(text: str) -> str:
    """The name of a job. Raises Refused."""
    return _taken(text, _JOB, "lower-case letters, digits, '-' and '.'")


def namespace(text: str) -> str:
    """The name of a namespace or a CapacityTier. Raises Refused."""
    return _taken(text, _NAMESPACE, "at most 63 lower-case letters, digits and '-'")


def _taken(text: str, form: re.Pattern[str], what: str) -> str:
    if not text:
        raise Refused("the name is empty: is a shell variable unset?")
    if len(text) > _LONGEST or not form.fullmatch(text):
        raise Refused(f"{text!r} is not a valid Kubernetes name: use {what}, with a letter or digit at both ends")
    return text
