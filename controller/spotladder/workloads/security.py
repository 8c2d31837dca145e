"""Security defaults for containers without such settings, chosen so that common images still work.

| setting | when |
|---|---|
| seccompProfile RuntimeDefault | the pod has none; neither Ray nor CUDA needs more |
| allowPrivilegeEscalation false, capabilities drop ALL | the container has none and is not privileged |
| runAsNonRoot, runAsUser 1000 | Ray's own images (rayproject/ray…), whose user this is. Other images may need root: set it in the template if they do not |
| readOnlyRootFilesystem | never by default: runtime environments, Keras and Hugging Face write to the home folder |
| an emptyDir at /tmp | the template makes the root file system read-only and mounts no volume at /tmp, where Ray keeps its session |
"""  # noqa: E501 – a table

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_RAY_IMAGE = re.compile(r"(?:.*/)?rayproject/ray(?:-ml|-llm)?(?:[:@].*)?")
_RAY_USER = 1000
_TMP_VOLUME = "spotladder-tmp"


def harden(pod_spec: dict[str, Any], containers: Iterable[dict[str, Any]]) -> None:
    """Set the defaults that the template does not set, in place."""
    pod = pod_spec["securityContext"] = dict(pod_spec.get("securityContext") or {})
    pod.setdefault("seccompProfile", {"type": "RuntimeDefault"})
    for container in containers:
        own = container["securityContext"] = dict(container.get("securityContext") or {})
        if not own.get("privileged"):
            own.setdefault("allowPrivilegeEscalation", False)
            own.setdefault("capabilities", {"drop": ["ALL"]})
        if is_ray_image(container.get("image", "")) and not _user_is_chosen(pod, own):
            own.update({"runAsNonRoot": True, "runAsUser": _RAY_USER})
        if own.get("readOnlyRootFilesystem"):
            _give_tmp(pod_spec, container)


def is_ray_image(image: str) -> bool:
    """Whether it is one of Ray's own images."""
    return _RAY_IMAGE.fullmatch(image) is not None


def _user_is_chosen(*contexts: dict[str, Any]) -> bool:
    return any(key in context for context in contexts for key in ("runAsUser", "runAsNonRoot"))


def _give_tmp(pod_spec: dict[str, Any], container: dict[str, Any]) -> None:
    mounts = list(container.get("volumeMounts") or ())
    if any(mount.get("mountPath", "").rstrip("/") == "/tmp" for mount in mounts):  # noqa: S108 – a path in the pod
        return
    container["volumeMounts"] = [*mounts, {"name": _TMP_VOLUME, "mountPath": "/tmp"}]  # noqa: S108
    if not any(volume.get("name") == _TMP_VOLUME for volume in pod_spec.get("volumes") or ()):
        pod_spec["volumes"] = [*(pod_spec.get("volumes") or ()), {"name": _TMP_VOLUME, "emptyDir": {}}]
