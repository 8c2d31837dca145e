"""Formats Terraform's errors as one line each: the error, its location and the remedy. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spotladder_infra.terraform.events import Diagnostic


@dataclass(frozen=True, slots=True)
class Rule:
    """The remedy of the errors whose text has a pattern. The remedy may name the placeholders of `explain`.

    A `common` cause is reported once: Terraform repeats the cloud's message for it as a second error.
    """

    pattern: str
    remedy: str
    common: bool = False


_CREDENTIALS = (
    "give this shell credentials of the cloud (aws sts get-caller-identity, gcloud auth application-default login) and "
    "run the command again"
)
_RULES: tuple[Rule, ...] = (
    Rule(
        r"acquiring the state lock|state is already locked",
        "wait until that run ends; if it no longer runs: {unlock}",
        common=True,
    ),
    Rule(
        r"No valid credential sources|ExpiredToken|InvalidClientTokenId|UnrecognizedClientException|AuthFailure"
        r"|SignatureDoesNotMatch|could not find default credentials|failed to refresh cached credentials"
        r"|oauth2: (?:cannot fetch token|\"invalid_grant\")|SSO session has expired|no EC2 IMDS role found",
        _CREDENTIALS,
        common=True,
    ),
    Rule(
        r"locked\s+provider\s[^:]*does\s+not\s+match\s+configured|Inconsistent dependency lock file",
        "delete {lock_file}: the next run chooses a version again",
        common=True,
    ),
    Rule(
        r"Failed to (?:query available|resolve|install) provider"
        r"|Unsupported Terraform Core version|Unsupported OpenTofu Core version|Required plugins are not installed"
        r"|Failed to instantiate provider|Failed to load plugin schemas|Invalid provider registry",
        "let it reach its registry (registry.terraform.io, registry.opentofu.org) or a mirror with such a version "
        "(provider_installation in its CLI configuration)",
        common=True,
    ),
    Rule(
        r"SERVICE_DISABLED|has not been used in project \S+ before or it is disabled",
        "enable it in the project; spotladder infra doctor prints one command for all APIs",
    ),
    Rule(
        r"EntityAlreadyExists|AlreadyExists|already exists|BucketAlreadyOwnedByYou|ResourceInUseException"
        r"|InvalidGroup\.Duplicate|QueueNameExists|DuplicateRecordException"
        r"|DuplicateResource|Error 409.*alreadyExists",
        "if it belongs to this cluster: {imported}; otherwise delete or rename it, or rename the cluster",
    ),
    Rule(
        r"Instance cannot be destroyed|deletion_protection|deletion protection",
        "it is protected: see docs/destroy.md",
    ),
    Rule(
        r"DependencyViolation|has dependencies and cannot be deleted|resourceInUseByAnotherResource",
        "a resource outside of the state still uses it: delete the resources listed below, and run the command again",
    ),
    Rule(
        r"bucket\s+(?:\S+\s+does\s+not|doesn't)\s+exist|NoSuchBucket|Backend (?:initialization|configuration)",
        "create the state bucket with spotladder infra state, or correct spec.state",
        common=True,
    ),
)
"""The first rule whose pattern is in an error applies."""

_LOCK_FIELD = re.compile(r"^\s*(ID|Who|Created):\s*(.+?)\s*$", re.MULTILINE)
_REQUEST_ID = re.compile(r",? ?(?:RequestID|request id|Request ID): ?[0-9A-Za-z-]*,?")
_LONGEST = 400


def explain(
    cluster: str,
    diagnostics: Sequence[Diagnostic],
    *,
    unlock: str,
    lock_file: str,
    import_command: Callable[[str], str],
) -> list[str]:
    """One line for each error; the first one only where several have the same cause.

    Args:
        cluster: The name of the stack's cluster.
        diagnostics: Those of the failed command; warnings are left out.
        unlock: The command that releases the state's lock, without the lock's id.
        lock_file: The file with the chosen versions of the providers, and its copy beside the stack.
        import_command: Returns the command that imports the resource at an address.
    """
    seen: set[str] = set()
    lines: list[str] = []
    for entry in diagnostics:
        text = f"{entry.summary}\n{entry.detail}"
        rule = next((rule for rule in _RULES if re.search(rule.pattern, text)), Rule("", ""))
        if entry.severity != "error" or rule.remedy in seen:
            continue
        if rule.common:
            seen.add(rule.remedy)
        lock = dict(_LOCK_FIELD.findall(entry.detail))
        locked = f"the state is locked by {lock.get('Who')} since {lock.get('Created')}"
        known = entry.address and "{imported}" in rule.remedy
        todo = rule.remedy.format(
            unlock=f"{unlock} {lock.get('ID', '')}".rstrip(),
            lock_file=lock_file,
            imported=import_command(entry.address) if known else "import it",
        )
        message = locked if lock and "{unlock}" in rule.remedy else _message_of(entry)
        lines.append(": ".join(part for part in (f"cluster {cluster}", entry.address, message, todo) if part))
    return list(dict.fromkeys(lines))


def _message_of(diagnostic: Diagnostic) -> str:
    """Terraform's message in one line, without request ids."""
    words = " ".join(f"{diagnostic.summary}: {diagnostic.detail}".split()).rstrip(":. ")
    words = _REQUEST_ID.sub("", words)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
