"""Names the Python package that a command needs and that is not installed."""

from __future__ import annotations

from importlib.util import find_spec

from spotladder.errors import EnvironmentFailure


def require_packages(*modules: str) -> None:
    """Raises EnvironmentFailure when a module with one of these names cannot be imported."""
    for module in modules:
        if find_spec(module) is None:
            package = module.replace("_", "-")
            raise EnvironmentFailure(
                f"the package {package} is missing: install it with pip install 'spotladder[infra]'"
            )
