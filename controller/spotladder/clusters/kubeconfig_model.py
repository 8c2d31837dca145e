"""The fields of a kubeconfig that are read. Unknown fields are ignored; null is the same as absent."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from spotladder.errors import EnvironmentFailure

Text = Annotated[str, Field(coerce_numbers_to_str=True)]
"""Kubernetes' own reader accepts a number as text, which passwords often look like."""


class _Section(BaseModel):
    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))


class Cluster(_Section):
    """How an API server is reached."""

    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: StrictBool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None


class Variable(_Section):
    """An environment variable of a credentials program."""

    name: Text
    value: Text | None = None


class Program(_Section):
    """A credentials program."""

    command: str | None = None
    args: list[Text] | None = None
    env: list[Variable] | None = None
    api_version: str | None = Field(None, alias="apiVersion")
    install_hint: str | None = Field(None, alias="installHint")


class User(_Section):
    """The credentials of a user."""

    token: Text | None = None
    token_file: str | None = Field(None, alias="tokenFile")
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    exec: Program | None = None
    auth_provider: Any = None
    username: str | None = None
    impersonated: Text | None = Field(None, alias="as")


class Context(_Section):
    """A cluster with a user."""

    cluster: Text | None = None
    user: Text | None = None
    namespace: str | None = None


class NamedCluster(_Section):
    """An entry of `clusters`."""

    name: Text
    cluster: Cluster | None = None


class NamedUser(_Section):
    """An entry of `users`."""

    name: Text
    user: User | None = None


class NamedContext(_Section):
    """An entry of `contexts`."""

    name: Text
    context: Context | None = None


class Kubeconfig(_Section):
    """A kubeconfig, or a part of one."""

    current_context: str | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


_EXPECTED = {"list": "must be a list", "model": "must be a mapping", "bool": "must be true or false"}


def checked(data: dict[str, Any], where: str) -> Kubeconfig:
    """The known fields of a kubeconfig. Raises EnvironmentFailure without quoting a value: a misplaced value may be a
    secret."""
    try:
        return Kubeconfig.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        expected = _EXPECTED.get(first["type"].partition("_")[0], "must be text")
        wrong = "is missing in this" if first["type"] == "missing" else f"{expected} in a"
        raise EnvironmentFailure(f"{where}: {field}: {wrong} kubeconfig") from None
