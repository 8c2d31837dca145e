"""The addresses that the controller may read for a namespace, and the credentials that it uses.

1. The controller's own identity is used only for addresses that are listed for the namespace.
2. A Secret with complete credentials is used alone, without any part of the controller's identity.
3. An endpoint in a Secret is used only with the credentials of that Secret, and only if it is listed for the namespace
   or a cloud's own. No name is resolved for another one, and no request is sent to it.
4. A namespace with listed addresses may use no others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spotladder.api.address import Endpoint, StoreAddress
from spotladder.api.tenancy import TenantRule, listed, rules_for, whom
from spotladder.errors import EnvironmentFailure, InvalidSpec

_WHOLE: Mapping[str, tuple[frozenset[str], ...]] = {
    "s3": (frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}),),
    "gs": (frozenset({"GOOGLE_SERVICE_ACCOUNT_KEY"}),),
    "az": (
        frozenset({"AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"}),
        frozenset({"AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_SAS_TOKEN"}),
        frozenset({"AZURE_STORAGE_ACCOUNT_NAME", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"}),
    ),
}
"""The sets of variables that are complete credentials, by vendor. A folder on a disk needs no credentials."""

_PLACE = {"s3": "AWS_ENDPOINT_URL", "az": "AZURE_STORAGE_ACCOUNT_NAME"}
"""The variable with the endpoint, by vendor."""

_OF_A_CLOUD = re.compile(
    r"(?:s3|s3(?:-fips)?(?:\.dualstack)?\.[a-z]{2}(?:-[a-z]+)+-[0-9])\.amazonaws\.com(?:\.cn)?"
    r"|storage\.googleapis\.com"
    r"|[a-z0-9]{3,24}\.blob\.core\.windows\.net"
)
"""The hosts of the clouds' own stores: S3 (its regional, dual-stack and FIPS endpoints), Google Cloud Storage, and the
accounts of Azure. They need no rule."""

_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_IN_A_HOST = {
    **dict.fromkeys(_REGIONS, re.compile(r"[A-Za-z0-9-]{1,63}")),
    "AZURE_STORAGE_ACCOUNT_NAME": re.compile(r"[a-z0-9]{3,24}"),
    "AZURE_TENANT_ID": re.compile(r"[A-Za-z0-9.-]{1,253}"),
}
"""Variables that become a part of a URL, and their allowed values."""


class AccessDenied(EnvironmentFailure):
    """The administrator has not allowed this access. The message names the field, and what to ask for."""


@dataclass(frozen=True, slots=True)
class Grant:
    """How a log is read. `isolated`: only with `environment`, without the controller's own identity. `endpoint`: the
    listed endpoint in the Secret; requests go to its host only. `chosen`: a pattern lists it, so that the namespace's
    users may name many hosts, and must not learn which of them answer. `secret`: all values in the job's Secret, which
    must not be shown."""

    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    isolated: bool = False
    endpoint: Endpoint | None = None
    chosen: bool = False
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)


def grant(
    rules: Iterable[TenantRule], namespace: str, uri: str, secret: Mapping[str, str] | None, name: str = ""
) -> Grant:
    """How a job's log may be read. `secret` is the content of its Secret with that name. Raises AccessDenied."""
    mine = rules_for(rules, namespace)
    uris = listed(mine, "uris")
    where = f"spec.checkpoints.credentials: Secret {namespace}/{name}"
    try:
        address = StoreAddress.parse(uri)
    except InvalidSpec as error:
        raise AccessDenied(f"spec.checkpoints.uri: {error.message}") from None
    if uris is not None and not any(map(address.within, uris)):
        allowed = ", ".join(sorted(map(str, uris)))
        raise AccessDenied(
            f"spec.checkpoints.uri: {uri} is not allowed in namespace {namespace} (allowed: {allowed}): use an allowed "
            f"address, or ask {whom(mine)} to add it to uris of the chart's tenancy"
        )
    held = {key: value for key, value in (secret or {}).items() if value}
    if any(held.keys() >= needed for needed in _WHOLE.get(address.scheme, ())):
        return _own_credentials(mine, address.scheme, held, where)
    if uris is None:
        raise AccessDenied(_identity_denied(namespace, uri, address.scheme, name, whom(mine)))
    return _identity(address.scheme, held, where)


def _own_credentials(mine: Sequence[TenantRule], scheme: str, held: Mapping[str, str], where: str) -> Grant:
    for variable, form in _IN_A_HOST.items():
        if variable in held and not form.fullmatch(held[variable]):
            raise AccessDenied(f"{where}: {variable} does not have the form of one: correct it")
    if scheme == "gs" and _redirected(held["GOOGLE_SERVICE_ACCOUNT_KEY"]):
        raise AccessDenied(f"{where}: GOOGLE_SERVICE_ACCOUNT_KEY names an endpoint (gcs_base_url): remove it")
    endpoint = _endpoint(scheme, held, where)
    of_a_cloud = endpoint is None or _is_of_a_cloud(endpoint)
    # A listed address of Azure does not contain the account, which is in the endpoint.
    needs_rule = not of_a_cloud or (scheme == "az" and listed(mine, "uris") is not None)
    if endpoint is not None and needs_rule and not _is_listed(endpoint, mine):
        raise AccessDenied(
            f"{where}: {_PLACE[scheme]}: {endpoint} is not allowed in this namespace: ask {whom(mine)} to add it to "
            "endpoints of the chart's tenancy"
        )
    if of_a_cloud:
        return Grant(held, isolated=True, secret=held)
    chosen = endpoint not in (listed(mine, "endpoints") or ())
    return Grant(held, isolated=True, endpoint=endpoint, chosen=chosen, secret=held)


def _is_of_a_cloud(endpoint: Endpoint) -> bool:
    return (endpoint.scheme, endpoint.port) == ("https", 443) and bool(_OF_A_CLOUD.fullmatch(endpoint.host))


def _is_listed(endpoint: Endpoint, mine: Sequence[TenantRule]) -> bool:
    return any(map(endpoint.matches, listed(mine, "endpoints") or ()))


def _identity_denied(namespace: str, uri: str, scheme: str, name: str, asked: str) -> str:
    lacking = _lacking(scheme)
    why = f"Secret {namespace}/{name} lacks {lacking}" if name and lacking else "the job names no credentials"
    instead = f"give the job a Secret with {lacking} (spec.checkpoints.credentials), or " if lacking else ""
    return (
        f"spec.checkpoints.uri: {uri} would be read with the controller's own identity ({why}), which namespace "
        f"{namespace} may not use: {instead}ask {asked} to add the address to uris of the chart's tenancy"
    )


def _identity(scheme: str, held: Mapping[str, str], where: str) -> Grant:
    place = _PLACE.get(scheme, "")
    if place in held:
        raise AccessDenied(
            f"{where} holds {place} and lacks {_lacking(scheme)}: the controller does not send its own credentials to "
            "the address of a Secret; add what is missing, or remove it"
        )
    regions = {key: held[key] for key in _REGIONS if _IN_A_HOST[key].fullmatch(held.get(key, ""))}
    return Grant(regions, secret=held)


def _lacking(scheme: str) -> str:
    return ", or ".join(" and ".join(sorted(needed)) for needed in _WHOLE.get(scheme, ()))


def _endpoint(scheme: str, held: Mapping[str, str], where: str) -> Endpoint | None:
    if scheme == "az":
        return Endpoint("https", f"{held['AZURE_STORAGE_ACCOUNT_NAME']}.blob.core.windows.net", 443)
    if scheme != "s3" or "AWS_ENDPOINT_URL" not in held:
        return None
    try:
        return Endpoint.parse(held["AWS_ENDPOINT_URL"])
    except InvalidSpec as error:
        raise AccessDenied(f"{where}: AWS_ENDPOINT_URL {error.message}") from None


def _redirected(key: str) -> bool:
    """Whether a service account's key has another endpoint than Google's."""
    try:
        parsed = json.loads(key)
    except ValueError:
        return False  # Not a key: the store reports it.
    return isinstance(parsed, dict) and "gcs_base_url" in parsed
