"""The error responses of a Kubernetes API server, by the reaction of the caller."""

from __future__ import annotations

from spotladder.core.model import Seconds
from spotladder.errors import EnvironmentFailure, SpotladderError


class ClusterUnreachable(EnvironmentFailure):
    """The server did not answer or is unavailable: retry later. A write may or may not have happened."""


class ServerTrouble(ClusterUnreachable):
    """The API server, or a proxy before it, answered with an internal error."""


class ApiError(SpotladderError):
    """The API server answered and refused. `status` is the HTTP code, `reason` Kubernetes' reason, `about` the
    resource in the response, which may differ from the requested one."""

    exit_code = 5

    def __init__(self, status: int, reason: str, message: str, *, where: str = "", about: str = "") -> None:
        self.status = status
        self.reason = reason
        self.about = about
        self.message = " ".join(message.split())
        super().__init__(": ".join(part for part in (where, f"{status} {reason}".strip(), self.message) if part))


class NotFound(ApiError):
    """No such object, or no such kind."""


class Conflict(ApiError):
    """Another client changed the object, owns the field, or took the name: read again."""


class Expired(ApiError):
    """The version from which to watch is too old: list again."""


class Forbidden(ApiError):
    """Missing permissions, or a quota: a user must act."""


class Unauthorized(ApiError):
    """The credentials are not accepted. Kubernetes' own message is only "Unauthorized"."""

    def __init__(self, status: int, reason: str, message: str, *, where: str = "", about: str = "") -> None:
        if message == reason:
            message = "the cluster rejects the credentials: log in again, or renew them"
        super().__init__(status, reason, message, where=where, about=about)


class Invalid(ApiError):
    """The object breaks a rule of its schema or of an admission policy."""


class Throttled(ApiError):
    """Too many requests, even after the delay that the server requested: `retry_after` seconds."""

    retry_after: Seconds = 1.0


_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: Throttled,
}


def api_error(status: int, reason: str, message: str, *, where: str = "", about: str = "") -> SpotladderError:
    """The error for this response."""
    if status >= 500:
        response = " ".join(f"{status} {reason}: {message}".split())
        return ServerTrouble(f"{where}: the API server answers {response}")
    return _BY_STATUS.get(status, ApiError)(status, reason, message, where=where, about=about)
