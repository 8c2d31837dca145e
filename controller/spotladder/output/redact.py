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

# A name is searched for by its telling part: what stands before it need not be read.
_NAME = (
    r"(?:secret|passwd|password|passphrase|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|credential)"
    r"[A-Za-z0-9_.-]{0,40}+"
)
_ASSIGNED = r"[\"']?\s*+[=:]\s*+"
_VALUE = r"(?!\[redacted\])(?:\"[^\"\n]+\"|'[^'\n]+'|[^\s\"',;)}\]]{6,})"
_A_NUMBER = r"(?![-+\d.,_e]+(?:[\s\"',;)}\]]|$))"
"""`num_tokens=4096` counts tokens."""

PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S), MASK),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), MASK),
    (re.compile(r"\b(?:IQoJ|FwoG|FQoG)[A-Za-z0-9+/]{60,}={0,2}"), MASK),
    (re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|hf_[A-Za-z0-9]{20,})"), MASK),
    (re.compile(r"\b(?:npm_[A-Za-z0-9]{36}|do[opr]_v1_[0-9a-f]{64}|xox[abprs]-[\w-]{10,})"), MASK),
    (re.compile(r"\b(?:sk-(?=[A-Za-z_-]{0,80}+\d)[\w-]{20,}|[prs]k_(?:live|test)_\w{16,})"), MASK),
    (re.compile(r"\bAIza[\w-]{35}|\bya29\.[\w-]{20,}"), MASK),
    (re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]+)*"), MASK),
    (re.compile(r"(://[^/\s:@]*:)[^@\s/]+@"), rf"\1{MASK}@"),
    (re.compile(r"(?i)([?&](?:sig|x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature)=)[^&\s\"']+"),
     rf"\1{MASK}"),
    (re.compile(r"(?i)\b(authorization[\"']?\s*+[:=]\s*+[\"']?)((?:bearer|basic|token)\s++)?[^\s\"',;]+"),
     rf"\1\2{MASK}"),
    (re.compile(r"(?i)\b(bearer\s++)[A-Za-z0-9._~+/-]{16,}=*"), rf"\1{MASK}"),
    (re.compile(rf"(?i)({_NAME}{_ASSIGNED}){_VALUE}"), rf"\1{MASK}"),
    (re.compile(rf"(?i)(token[\w.-]{{0,40}}+{_ASSIGNED}){_A_NUMBER}{_VALUE}", re.M), rf"\1{MASK}"),
    (re.compile(r"(?<![A-Za-z0-9/+=_-])(?=[A-Za-z/+]{0,39}+\d)(?=[^A-Z]{0,39}+[A-Z])(?=[^a-z]{0,39}+[a-z])"
                r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])"), MASK),
    (re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{86}=="), MASK),
    (re.compile(r"\b[0-9a-fA-F]{40}\b"), MASK),
)  # fmt: skip
"""The formats of secrets and what replaces them. Each takes time in proportion to the text, whatever it contains: the
parts of a pattern are bounded, or possessive, or followed by nothing that can fail after a long match.

In order: private keys, AWS access key ids and session tokens, tokens of GitHub, GitLab, Hugging Face, npm,
DigitalOcean, Slack, OpenAI, Stripe and Google, JSON Web Tokens and other JSON in base64, passwords and signatures in
addresses, headers, values of telling names, AWS secret access keys, keys of Azure's storage accounts, and keys of 40
hexadecimal digits, which Git's commits have, too."""


_SECRET_VARIABLE = re.compile(r"(?i)secret|token|passw|key|credential|sas|connection_string")


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """The values of the variables that are secret by their names: not a region, not an endpoint."""
    return [value for name, value in environment.items() if _SECRET_VARIABLE.search(name)]


def redacted(text: str, known: Iterable[str] = ()) -> str:
    """The text with `[redacted]` in place of the known values and of text that has the format of a secret."""
    for value in sorted({value for value in known if len(value) >= SHORTEST}, key=len, reverse=True):
        text = text.replace(value, MASK)
    for shape, instead in PATTERNS:
        text = shape.sub(instead, text)
    return text
