"""The types of the kubeconfig fields that are read. A value of another type is an error that names the field."""

from __future__ import annotations

from typing import Any

from spotladder.errors import EnvironmentFailure

_SCALAR = str | int | float
"""Kubernetes' own reader accepts a number as text, which passwords often look like."""

_KUBECONFIG: dict[str, Any] = {
    "current-context": str,
    "clusters": [
        {
            "name": _SCALAR,
            "cluster": {
                "server": str,
                "certificate-authority": str,
                "certificate-authority-data": str,
                "insecure-skip-tls-verify": bool,
                "tls-server-name": str,
                "proxy-url": str,
            },
        }
    ],
    "users": [
        {
            "name": _SCALAR,
            "user": {
                "token": _SCALAR,
                "tokenFile": str,
                "username": _SCALAR,
                "password": _SCALAR,
                "client-certificate": str,
                "client-certificate-data": str,
                "client-key": str,
                "client-key-data": str,
                "exec": {
                    "command": str,
                    "args": [_SCALAR],
                    "env": [{"name": _SCALAR, "value": _SCALAR}],
                    "apiVersion": str,
                    "installHint": str,
                },
            },
        }
    ],
    "contexts": [{"name": _SCALAR, "context": {"cluster": _SCALAR, "user": _SCALAR, "namespace": str}}],
}
_WORDS = {dict: "a mapping", list: "a list", bool: "true or false"}


def check(config: dict[str, Any], where: str) -> None:
    """Raises EnvironmentFailure without quoting a value: a misplaced value may be a secret."""
    _check(config, _KUBECONFIG, "", where)


def _check(value: Any, shape: Any, field: str, where: str) -> None:
    kind: Any = type(shape) if isinstance(shape, dict | list) else shape
    if not isinstance(value, kind):
        raise EnvironmentFailure(f"{where}: {field}: must be {_WORDS.get(kind, 'text')} in a kubeconfig")
    if isinstance(shape, list):
        for index, item in enumerate(value):
            _check(item, shape[0], f"{field}[{index}]", where)
            if isinstance(item, dict) and item.get("name") is None:
                raise EnvironmentFailure(f"{where}: {field}[{index}].name: is missing in this kubeconfig")
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            if value.get(key) is not None:  # null is the same as absent
                _check(value[key], inner, f"{field}.{key}".lstrip("."), where)
