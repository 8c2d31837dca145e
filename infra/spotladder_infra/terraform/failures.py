"""Formats Terraform's errors as one line each: the error, its location and the remedy. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from spotladder_infra.terraform.events import Diagnostic


class Kind(StrEnum):
    """The kind of an error, which determines the remedy."""

    LOCKED = "locked"
    CREDENTIALS = "credentials"
    ACCOUNT = "account"
    DENIED = "denied"
    API_DISABLED = "api-disabled"
    NETWORK = "network"
    PROVIDER = "provider"
    PINNED = "pinned"
    BACKEND = "backend"
    QUOTA = "quota"
    COLLISION = "collision"
    PROTECTED = "protected"
    NOT_EMPTY = "not-empty"
    IN_USE = "in-use"
    STALE = "stale"
    OTHER = "other"


_RULES: tuple[tuple[Kind, str], ...] = (
    (Kind.LOCKED, r"acquiring the state lock|state is already locked"),
    (
        Kind.CREDENTIALS,
        (
            r"No valid credential sources|ExpiredToken|InvalidClientTokenId|UnrecognizedClientException|AuthFailure"
            r"|SignatureDoesNotMatch|could not find default credentials|failed to refresh cached credentials"
            r"|oauth2: (?:cannot fetch token|\"invalid_grant\")|SSO session has expired|no EC2 IMDS role found"
        ),
    ),
    (Kind.ACCOUNT, r"account ID not allowed|AWS account ID .* not allowed"),
    (Kind.PINNED, r"locked\s+provider\s[^:]*does\s+not\s+match\s+configured|Inconsistent dependency lock file"),
    (
        Kind.PROVIDER,
        (
            r"Failed to (?:query available|resolve|install) provider"
            r"|Unsupported Terraform Core version|Unsupported OpenTofu Core version|Required plugins are not installed"
            r"|Failed to instantiate provider|Failed to load plugin schemas|Invalid provider registry"
        ),
    ),
    (
        Kind.NETWORK,
        r"request send failed|no such host|dial tcp|i/o timeout|[Cc]onnection refused|TLS handshake timeout",
    ),
    (Kind.CREDENTIALS, r"retrieving caller identity from STS|validating provider credentials"),
    (Kind.API_DISABLED, r"SERVICE_DISABLED|has not been used in project \S+ before or it is disabled"),
    (
        Kind.QUOTA,
        (
            r"LimitExceeded|ServiceQuotaExceeded|QuotaExceeded|quotaExceeded|QUOTA_EXCEEDED"
            r"|exceeded (?:the |your )?quota|Quota '?[A-Z_]+'? exceeded|MaxSpotInstanceCountExceeded"
            r"|ResourceLimitExceeded|TooManyBuckets"
        ),
    ),
    (
        Kind.COLLISION,
        (
            r"EntityAlreadyExists|AlreadyExists|already exists|BucketAlreadyOwnedByYou|ResourceInUseException"
            r"|InvalidGroup\.Duplicate|QueueNameExists|DuplicateRecordException"
            r"|DuplicateResource|Error 409.*alreadyExists"
        ),
    ),
    (Kind.PROTECTED, r"Instance cannot be destroyed|deletion_protection|deletion protection"),
    (Kind.NOT_EMPTY, r"BucketNotEmpty|bucket .* (?:is not empty|contains objects)|without `?force_destroy"),
    (Kind.IN_USE, r"DependencyViolation|has dependencies and cannot be deleted|resourceInUseByAnotherResource"),
    (
        Kind.DENIED,
        r"AccessDenied|UnauthorizedOperation|not authorized to perform|Error 403|PERMISSION_DENIED|StatusCode: 403",
    ),
    (Kind.BACKEND, r"Failed to get existing workspaces|NoSuchBucket|Backend (?:initialization|configuration)|backend"),
    (Kind.STALE, r"Saved plan is stale|plan .* is stale"),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _RULES)

_LOCK_FIELD = re.compile(r"^\s*(ID|Operation|Who|Created):\s*(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Lock:
    """The holder of a state's lock. A field is empty if Terraform does not print it."""

    identifier: str
    operation: str
    who: str
    created: str


def kind_of(diagnostic: Diagnostic) -> Kind:
    """The kind of failure of a diagnostic."""
    text = f"{diagnostic.summary}\n{diagnostic.detail}"
    return next((kind for kind, pattern in _COMPILED if pattern.search(text)), Kind.OTHER)


def lock_of(diagnostic: Diagnostic) -> Lock:
    """The lock that a diagnostic of kind LOCKED names."""
    fields = dict(_LOCK_FIELD.findall(diagnostic.detail))
    operation = fields.get("Operation", "").removeprefix("OperationType").lower()
    return Lock(fields.get("ID", ""), operation, fields.get("Who", ""), fields.get("Created", ""))


@dataclass(frozen=True, slots=True)
class Remedies:
    """The commands and the file that errors of one stack name.

    Args:
        unlock: The command that releases the state's lock, without the lock's id.
        lock_file: The file with the chosen versions of the providers.
        import_command: Returns the command that imports the resource at an address.
    """

    unlock: str
    lock_file: str
    import_command: Callable[[str], str]


def explain(cluster: str, diagnostics: Sequence[Diagnostic], remedies: Remedies) -> list[str]:
    """One line for each error; the first one only where several have the same cause.

    Args:
        cluster: The name of the stack's cluster.
        diagnostics: Those of the failed command; warnings are left out.
    """
    errors = [entry for entry in diagnostics if entry.severity == "error"]
    causes: set[Kind] = set()
    lines: list[str] = []
    for entry in errors:
        kind = kind_of(entry)
        if kind in _ONE_CAUSE and kind in causes:
            continue
        causes.add(kind)
        lines.append(_line(cluster, entry, remedies))
    return list(dict.fromkeys(lines))


_ONE_CAUSE = frozenset(
    {Kind.LOCKED, Kind.CREDENTIALS, Kind.ACCOUNT, Kind.NETWORK, Kind.PROVIDER, Kind.PINNED, Kind.BACKEND}
)
"""Kinds that are reported once: Terraform repeats the cloud's message for the same cause as a second error."""


def _line(cluster: str, diagnostic: Diagnostic, remedies: Remedies) -> str:
    kind = kind_of(diagnostic)
    where = f"cluster {cluster}" + (f": {diagnostic.address}" if diagnostic.address else "")
    if kind is Kind.LOCKED:
        lock = lock_of(diagnostic)
        doing = f" for {lock.operation}" if lock.operation else ""
        return (
            f"{where}: the state is locked by {lock.who or 'another run'}{doing} since {lock.created or 'unknown'} "
            f"(lock {lock.identifier or 'unknown'}): wait until that run ends; "
            f"if it no longer runs: {remedies.unlock} {lock.identifier}".rstrip()
        )
    todo = _TODO.get(kind)
    if kind is Kind.PINNED:
        todo = f"delete {remedies.lock_file}: the next run chooses a version again"
    elif kind is Kind.COLLISION and diagnostic.address:
        todo = f"if it belongs to this cluster: {remedies.import_command(diagnostic.address)}; otherwise {todo}"
    return f"{where}: {_message_of(diagnostic)}" + (f": {todo}" if todo else "")


_TODO = {
    Kind.CREDENTIALS: "give this shell credentials of the cloud (aws sts get-caller-identity, "
    "gcloud auth application-default login) and run the command again",
    Kind.ACCOUNT: "use credentials of the account in the fleet file, or correct `account`",
    Kind.DENIED: "ask for the permission, or use another identity",
    Kind.API_DISABLED: "enable it in the project; spotladder infra doctor prints one command for all APIs",
    Kind.NETWORK: "check the network of this machine and its proxy (HTTPS_PROXY), and run the command again",
    Kind.PROVIDER: "let it reach its registry (registry.terraform.io, registry.opentofu.org) or a mirror with such a "
    "version (provider_installation in its CLI configuration)",
    Kind.BACKEND: "create the state bucket with spotladder infra state, or correct spec.state",
    Kind.QUOTA: "raise the quota with the cloud, or make the fleet smaller, and run the command again",
    Kind.COLLISION: "delete or rename it, or rename the cluster",
    Kind.PROTECTED: "it is protected: see docs/destroy.md",
    Kind.NOT_EMPTY: "the bucket holds objects, which no command deletes: empty it first, or keep it",
    Kind.IN_USE: "a resource outside of the state still uses it: delete the resources listed "
    "below, and run the command again",
    Kind.STALE: "another run changed the cluster in between: run the command again",
}

_LONGEST = 400


def _message_of(diagnostic: Diagnostic) -> str:
    """Terraform's message in one line, without request ids."""
    words = " ".join(f"{diagnostic.summary}: {diagnostic.detail}".split()).rstrip(":. ")
    words = re.sub(r",? ?(?:RequestID|request id|Request ID): ?[0-9A-Za-z-]*,?", "", words)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
