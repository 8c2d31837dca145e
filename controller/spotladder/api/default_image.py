"""The image of a program container whose template names none: Ray's own image."""

from __future__ import annotations

from typing import Any

from spotladder.api.accelerators import accelerators
from spotladder.versions import RAY

_PYTHON = "py312"


def default_image(container: Any, ray_version: str = RAY) -> str:
    """Ray's image of this version, with CUDA if the container requests accelerators."""
    return f"rayproject/ray:{ray_version}-{_PYTHON}{'-gpu' if accelerators(container) else ''}"
