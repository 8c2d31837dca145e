"""The address and the credentials of an API server, from a kubeconfig or from inside a pod."""

from __future__ import annotations

import base64
import binascii
import errno
import os
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from spotladder.clusters.clock import SystemClock
from spotladder.clusters.credentials import BearerToken, Credentials, Fixed, token_file, token_of_program
from spotladder.clusters.kubeconfig_model import Cluster, Context, Kubeconfig, User, checked
from spotladder.errors import EnvironmentFailure
from spotladder.state_folder import with_home

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

IN_CLUSTER = "in-cluster"
"""The name of the connection of a pod to its own cluster."""

MAX_DEPTH = 32
"""Maximum nesting of a kubeconfig. Reading takes a time that grows with its square."""

_GIVE = "set a cluster with --kubeconfig or KUBECONFIG"


@dataclass(frozen=True, slots=True)
class Connection:
    """`namespace` is that of the context, or of the pod."""

    server: str
    credentials: Credentials
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    namespace: str = "default"
    context: str = ""


def connect(kubeconfig: str | None = None, context: str | None = None) -> Connection:
    """Find the cluster like kubectl: the given file, $KUBECONFIG, the pod's service account, ~/.kube/config.

    Raises EnvironmentFailure if there is no cluster or its configuration is not usable.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and not context and (SERVICE_ACCOUNT / "token").exists():
        return in_cluster()
    config, where = _read(kubeconfig)
    return from_kubeconfig(config, context, where=where)


def configured() -> bool:
    """Whether `connect` finds a cluster without arguments."""
    default = with_home("~/.kube/config")
    return bool(os.environ.get("KUBECONFIG")) or default.exists() or (SERVICE_ACCOUNT / "token").exists()


def contexts(kubeconfig: str | None = None) -> tuple[str, ...]:
    """The contexts that `connect` accepts. Raises the same EnvironmentFailure."""
    config, _ = _read(kubeconfig)
    return tuple(entry.name for entry in config.contexts or ())


def _read(kubeconfig: str | None) -> tuple[Kubeconfig, str]:
    """The merged kubeconfig of all files, and their names."""
    named = kubeconfig or os.environ.get("KUBECONFIG")
    files = [with_home(part) for part in (named or "~/.kube/config").split(os.pathsep) if part]
    where = ", ".join(map(str, files)) or f"KUBECONFIG={named}"
    merged: Kubeconfig | None = None
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise EnvironmentFailure(f"{file}: {error.strerror}: {_GIVE}") from None
        except UnicodeDecodeError:
            raise EnvironmentFailure(f"{file}: is not text; it should be a kubeconfig") from None
        merged = _merged(merged or Kubeconfig(), parse(text, str(file)), file.parent)
    if merged is None:
        raise EnvironmentFailure(f"{where}: {os.strerror(errno.ENOENT)}: {_GIVE}")
    return merged, where


def in_cluster(folder: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ) -> Connection:
    """The API server of the cluster in which this pod runs."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise EnvironmentFailure(
            "KUBERNETES_SERVICE_HOST is not set: spotladder does not run in a pod; specify --kubeconfig"
        )
    namespace = folder / "namespace"
    return Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        credentials=token_file(folder / "token", SystemClock()),
        tls=_context("the pod's service account", str(folder / "ca.crt")),
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.exists() else "default",
        context=IN_CLUSTER,
    )


def trusting(authority: str) -> ssl.SSLContext:
    """TLS with a server whose certificate authority is given in base64; "" uses the public authorities."""
    return _context("the cluster", None, _decoded(authority, "certificate authority", "the cluster"))


def parse(text: str, where: str) -> Kubeconfig:
    """Parse a kubeconfig or a part of it. Raises EnvironmentFailure without quoting the text, which may
    have secrets."""
    from ruamel.yaml import YAML  # noqa: PLC0415 – imported only for a kubeconfig
    from ruamel.yaml.composer import MaxDepthExceededError  # noqa: PLC0415
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    reader = YAML(typ="safe", pure=True)
    reader.max_depth = MAX_DEPTH
    try:
        data = reader.load(text) or {}
    except MaxDepthExceededError:
        raise EnvironmentFailure(
            f"{where}: is nested more than {MAX_DEPTH} levels deep; it should be a kubeconfig"
        ) from None
    # The YAML reader raises these for invalid tags and dates.
    except (YAMLError, LookupError, RecursionError, ValueError):
        raise EnvironmentFailure(f"{where}: is not YAML; it should be a kubeconfig") from None
    if not isinstance(data, dict):
        raise EnvironmentFailure(f"{where}: is not a mapping; it should be a kubeconfig")
    return checked(data, where)


def from_kubeconfig(config: Kubeconfig, context: str | None = None, *, where: str = "kubeconfig") -> Connection:
    """The connection of a kubeconfig's context. Raises EnvironmentFailure."""
    if not config.clusters:
        raise EnvironmentFailure(f"{where}: has no clusters; it should be a kubeconfig")
    chosen = context or config.current_context or ""
    if not chosen:
        raise EnvironmentFailure(f"{where}: no current-context is set; specify one with --context")
    entry: Context = _named(config.contexts, chosen, "context", where)
    cluster: Cluster = _named(config.clusters, entry.cluster or "", "cluster", where)
    user: User = _named(config.users, entry.user, "user", where) if entry.user else User.model_validate({})
    if user.impersonated:  # The user's own rights may be more.
        acts = f"the user {entry.user} acts as {user.impersonated} (impersonation)"
        raise EnvironmentFailure(f"{where}: {acts}, which is not supported: use the credentials of that account")
    server = cluster.server
    if server is None:
        raise EnvironmentFailure(f"{where}: cluster {entry.cluster} has no server")
    if not _is_address(server):
        wrong = f"cluster {entry.cluster}: server {server!r} is not an address"
        raise EnvironmentFailure(f"{where}: {wrong}: write one like https://host:6443")
    return Connection(
        server=server.rstrip("/"),
        credentials=_credentials(user, where),
        tls=_tls(cluster, user, where) if server.lower().startswith("https:") else None,
        server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url,
        namespace=entry.namespace or "default",
        context=chosen,
    )


def _named(entries: Sequence[Any] | None, name: str, kind: str, where: str) -> Any:
    for entry in entries or ():
        if entry.name == name and (found := getattr(entry, kind)) is not None:
            return found
    known = ", ".join(entry.name for entry in entries or ()) or "none"
    raise EnvironmentFailure(f"{where}: there is no {kind} {name!r}; there is: {known}")


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # Its port, or an IPv6 address.
        return False


def _merged(first: Kubeconfig, second: Kubeconfig, folder: Path) -> Kubeconfig:
    """Merge like kubectl: the first file that sets a value wins. Relative paths are relative to their own file."""
    settings = [*(entry.cluster for entry in second.clusters or ()), *(entry.user for entry in second.users or ())]
    for each in filter(None, settings):
        for field in ("certificate_authority", "client_certificate", "client_key", "token_file"):
            if path := getattr(each, field, None):
                setattr(each, field, str(folder / path))
    merged = {}
    for section in ("clusters", "users", "contexts"):
        mine = getattr(first, section) or []
        names = {entry.name for entry in mine}
        merged[section] = [*mine, *(entry for entry in getattr(second, section) or () if entry.name not in names)]
    return first.model_copy(update={**merged, "current_context": first.current_context or second.current_context})


def _credentials(user: User, where: str) -> Credentials:
    if program := user.exec:
        fetch = partial(
            token_of_program,
            [program.command or "", *(program.args or ())],
            {entry.name: entry.value or "" for entry in program.env or ()},
            program.api_version or "client.authentication.k8s.io/v1",
            program.install_hint or "",
        )
        return BearerToken(fetch, clock=SystemClock())
    if user.token_file:
        return token_file(Path(user.token_file), SystemClock())
    if user.token:
        return Fixed({"Authorization": f"Bearer {user.token}"})
    if user.auth_provider:
        raise EnvironmentFailure(f"{where}: auth-provider users are gone from Kubernetes; use an exec plugin")
    if user.username:
        raise EnvironmentFailure(f"{where}: users with a password are gone from Kubernetes; use a token")
    return Fixed()


def _tls(cluster: Cluster, user: User, where: str) -> ssl.SSLContext:
    authority = _decoded(cluster.certificate_authority_data, "certificate-authority-data", where)
    context = _context(where, cluster.certificate_authority, authority)
    if cluster.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = _decoded(user.client_certificate_data, "client-certificate-data", where)
    key = _decoded(user.client_key_data, "client-key-data", where)
    files = user.client_certificate, user.client_key
    if not (certificate or files[0]):
        return context
    # The ssl module reads keys only from files: for this call the key is in a file that only this user can read.
    with tempfile.TemporaryDirectory(prefix="spotladder-") as folder:
        paths = []
        for name, data, file in (("certificate", certificate, files[0]), ("key", key, files[1])):
            path = Path(folder) / name
            if data:
                path.touch(mode=0o600)
                path.write_text(data, encoding="utf-8")
            paths.append(str(path) if data else file)
        try:
            context.load_cert_chain(paths[0] or "", paths[1])
        except (OSError, ValueError) as error:
            named = " ".join(["the client certificate and key", *filter(None, files)])
            raise EnvironmentFailure(f"{where}: {named} cannot be used: {_why(error)}") from None
    return context


def _context(where: str, file: str | None, data: str | None = None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if data else file, cadata=data)
    except (OSError, TypeError, ValueError) as error:
        named = " ".join(["the certificate authority", *filter(None, [file])])
        raise EnvironmentFailure(f"{where}: {named} cannot be used: {_why(error)}") from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _decoded(data: str | None, field: str, where: str) -> str | None:
    if not data:
        return None
    try:
        return base64.b64decode("".join(data.split()), validate=True).decode()
    except (binascii.Error, ValueError):
        raise EnvironmentFailure(f"{where}: {field} is not base64") from None
