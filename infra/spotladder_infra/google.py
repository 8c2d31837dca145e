"""Google Cloud's REST APIs, with the application default credentials of the shell.

The endpoints may be replaced by the variables that Terraform's provider reads as well: GOOGLE_COMPUTE_CUSTOM_ENDPOINT,
GOOGLE_STORAGE_CUSTOM_ENDPOINT, GOOGLE_CONTAINER_CUSTOM_ENDPOINT and so on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from spotladder.errors import EnvironmentFailure
from spotladder.extras import require
from spotladder_infra.names import ForeignBucket

COMPUTE = "GOOGLE_COMPUTE_CUSTOM_ENDPOINT"
STORAGE = "GOOGLE_STORAGE_CUSTOM_ENDPOINT"
CONTAINER = "GOOGLE_CONTAINER_CUSTOM_ENDPOINT"
IAM = "GOOGLE_IAM_CUSTOM_ENDPOINT"
REGISTRY = "GOOGLE_ARTIFACT_REGISTRY_CUSTOM_ENDPOINT"
SERVICES = "GOOGLE_SERVICE_USAGE_CUSTOM_ENDPOINT"
ENDPOINTS: Mapping[str, str] = {
    COMPUTE: "https://compute.googleapis.com/compute/v1/",
    STORAGE: "https://storage.googleapis.com/storage/v1/",
    CONTAINER: "https://container.googleapis.com/v1/",
    IAM: "https://iam.googleapis.com/v1/",
    REGISTRY: "https://artifactregistry.googleapis.com/v1/",
    SERVICES: "https://serviceusage.googleapis.com/v1/",
}
FORBIDDEN = 403
TIMEOUT = 15.0
"""Seconds for one request."""

_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_LOGIN = "check the credentials of this shell (gcloud auth application-default login)"


class RequestRefused(EnvironmentFailure):
    """An error response. `status` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Google:
    """Google's APIs with one identity. Raises EnvironmentFailure without credentials, or without google-auth."""

    def __init__(self) -> None:
        require("gcp", "google.auth")
        import google.auth  # noqa: PLC0415 – slow to import, and only for fleets on Google Cloud
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415
        from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415

        try:
            self._credentials, self.project = google.auth.default(scopes=_SCOPES)
        except GoogleAuthError as error:
            raise EnvironmentFailure(f"Google Cloud: {_line(error)}: {_LOGIN}") from None
        self._session = AuthorizedSession(self._credentials)

    def call(self, endpoint: str, method: str, path: str, body: Any = None, **parameters: str) -> dict[str, Any]:
        """The JSON of the response; empty for a response without a body.

        Args:
            endpoint: One of `ENDPOINTS`.
            parameters: Of the query.

        Raises:
            RequestRefused: The response is an error.
            EnvironmentFailure: The API does not respond.
        """
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415
        from requests import RequestException  # noqa: PLC0415 – google-auth brings it

        url = (os.environ.get(endpoint) or ENDPOINTS[endpoint]).rstrip("/") + "/" + path
        try:
            answer = self._session.request(method, url, json=body, params=parameters, timeout=TIMEOUT)
        except (GoogleAuthError, RequestException) as error:
            raise EnvironmentFailure(f"Google Cloud: {_line(error)}: {_LOGIN}") from None
        if answer.ok:
            found: dict[str, Any] = answer.json() if answer.content else {}
            return found
        raise RequestRefused(answer.status_code, f"Google Cloud refuses {method} {path}: {_reason(answer)}")

    def find(self, endpoint: str, path: str, **parameters: str) -> dict[str, Any] | None:
        """The resource at that path; None when it does not exist. Raises as `call` does."""
        try:
            return self.call(endpoint, "GET", path, **parameters)
        except RequestRefused as refusal:
            if refusal.status == 404:
                return None
            raise

    def pages(self, endpoint: str, path: str, **parameters: str) -> Iterator[dict[str, Any]]:
        """The pages of a list. Raises as `call` does."""
        page = self.call(endpoint, "GET", path, **parameters)
        yield page
        while token := page.get("nextPageToken"):
            page = self.call(endpoint, "GET", path, **parameters, pageToken=token)
            yield page

    def cluster(self, project: str, region: str, name: str) -> dict[str, Any] | None:
        """A GKE cluster; None when it does not exist. Raises as `call` does."""
        return self.find(CONTAINER, f"projects/{project}/locations/{region}/clusters/{name}")

    def bucket_labels(self, name: str) -> dict[str, str] | None:
        """The labels of a bucket; None when it does not exist. Raises ForeignBucket and EnvironmentFailure."""
        try:
            found = self.find(STORAGE, f"b/{name}")
        except RequestRefused as refusal:
            if refusal.status != FORBIDDEN:
                raise
            raise ForeignBucket(str(refusal.status)) from None
        return None if found is None else dict(found.get("labels", {}))


def _reason(answer: Any) -> str:
    try:
        return f"{answer.status_code} {_line(answer.json()['error']['message'])}"
    except (ValueError, KeyError, TypeError):
        return f"{answer.status_code} {answer.reason}"


def _line(text: object) -> str:
    return " ".join(str(text).split())
