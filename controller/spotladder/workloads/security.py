"""Security defaults for containers without such settings, chosen so that the images of training programs work.

| setting | when |
|---|---|
| seccompProfile RuntimeDefault | the pod has none; neither Ray nor CUDA needs more |
| capabilities drop NET_RAW and MKNOD | the container has none and is not privileged |
| runAsNonRoot, runAsUser 1000 | Ray's own images (rayproject/ray…), whose user this is |
| allowPrivilegeEscalation false, capabilities drop ALL, runAsNonRoot | `podSecurity: restricted`, also for sidecars and init containers; for each setting that the template does not have |
| readOnlyRootFilesystem | never by default: runtime environments, Keras and Hugging Face write to the home folder |
| an emptyDir at /tmp | the template makes the root file system read-only and mounts no volume at /tmp, where Ray keeps its session |

An image that starts as root needs the other default capabilities, all of which Kubernetes' baseline allows: CHOWN,
FOWNER, FSETID and DAC_OVERRIDE for chown, untar and a folder of another user; SETUID, SETGID, SETPCAP and SETFCAP for
apt-get, su and gosu; AUDIT_WRITE and SYS_CHROOT for sudo and sshd, which MPI launchers start; KILL and NET_BIND_SERVICE
for supervisors and servers. Without NET_RAW a pod cannot forge packets on the cluster's network, and without MKNOD it
cannot create device files. allowPrivilegeEscalation is not set: false breaks sudo, which many images use.
"""  # noqa: E501 – a table

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_RAY_IMAGE = re.compile(r"(?:.*/)?rayproject/ray(?:-ml|-llm)?(?:[:@].*)?")
_RAY_USER = 1000
_TMP_VOLUME = "spotladder-tmp"


_UNNEEDED = ("NET_RAW", "MKNOD")


def harden(pod_spec: dict[str, Any], programs: Sequence[dict[str, Any]], *, restricted: bool = False) -> None:
    """Set the defaults that the template does not set, in place. `restricted`: for all containers of the pod, so that
    it meets the Pod Security Standard of this name."""
    pod = pod_spec["securityContext"] = dict(pod_spec.get("securityContext") or {})
    pod.setdefault("seccompProfile", {"type": "RuntimeDefault"})
    containers = [*pod_spec["containers"], *(pod_spec.get("initContainers") or ())] if restricted else programs
    for container in containers:
        own = container["securityContext"] = dict(container.get("securityContext") or {})
        if not own.get("privileged"):
            own.setdefault("capabilities", {"drop": ["ALL"] if restricted else list(_UNNEEDED)})
            if restricted:
                own.setdefault("allowPrivilegeEscalation", False)
        if is_ray_image(container.get("image", "")) and not _user_is_chosen(pod, own):
            own.update({"runAsNonRoot": True, "runAsUser": _RAY_USER})
        elif restricted and "runAsNonRoot" not in pod:
            own.setdefault("runAsNonRoot", True)
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
