"""Removes secrets from program output.

Two methods, since neither is enough alone: the values that are known to be secret, and the formats that secrets usually
have. A secret of neither kind stays in the text: programs should not print secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

MASK = "[redacted]"

SHORTEST = 6
"""Known values of fewer characters are left alone: `true` or `1` would be removed everywhere."""

# Bounded on both sides, so that a long line without blanks is not searched again from each of its characters.
_NAMES = (
    r"(?:[A-Za-z0-9_.-]{0,40}(?:secret|passwd|password|passphrase|api[_-]?key|access[_-]?key|account[_-]?key|"
    r"private[_-]?key|credential)[A-Za-z0-9_.-]{0,40})"
)
_VALUE = r"(\"[^\"\n]+\"|'[^'\n]+'|[^\s\"',;)}\]]{6,})"
_A_NUMBER = r"(?![-+\d.,_e]+(?:[\s\"',;)}\]]|$))"
"""`num_tokens=4096` counts tokens."""

_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S), MASK),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), MASK),
    (re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|hf_[A-Za-z0-9]{20,})"), MASK),
    (re.compile(r"\bxox[abprs]-[\w-]{10,}"), MASK),
    (re.compile(r"\b(?:sk-(?=[\w-]{0,80}\d)[\w-]{20,}|[prs]k_(?:live|test)_\w{16,})"), MASK),
    (re.compile(r"\bAIza[\w-]{35}|\bya29\.[\w-]{20,}"), MASK),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), MASK),
    (re.compile(r"(://[^/\s:@]*:)[^@\s/]+@"), rf"\1{MASK}@"),
    (re.compile(r"(?i)([?&](?:sig|x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature)=)[^&\s\"']+"),
     rf"\1{MASK}"),
    (re.compile(r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?)((?:bearer|basic|token)\s+)?[^\s\"',;]+"), rf"\1\2{MASK}"),
    (re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/-]{16,}=*"), rf"\1{MASK}"),
    (re.compile(rf"(?i)\b({_NAMES}[\"']?\s*[=:]\s*){_VALUE}"), rf"\1{MASK}"),
    (re.compile(rf"(?i)\b([\w.-]{0,40}token[\w.-]{0,40}[\"']?\s*[=:]\s*){_A_NUMBER}{_VALUE}", re.M), rf"\1{MASK}"),
)  # fmt: skip


_SECRET_VARIABLE = re.compile(r"(?i)secret|token|passw|key|credential|sas|connection_string")


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """The values of the variables that are secret by their names: not a region, not an endpoint."""
    return [value for name, value in environment.items() if _SECRET_VARIABLE.search(name)]


def redacted(text: str, known: Iterable[str] = ()) -> str:
    """The text with `[redacted]` in place of the known values and of text that has the format of a secret."""
    for value in sorted({value for value in known if len(value) >= SHORTEST}, key=len, reverse=True):
        text = text.replace(value, MASK)
    for shape, instead in _SHAPES:
        text = shape.sub(instead, text)
    return text
