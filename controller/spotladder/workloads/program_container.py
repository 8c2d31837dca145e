"""Which container of a pod is the program container: the one that runs the user's program, or Ray.

The first of these that names a container decides, for a pod template and for a pod:

1. the annotation `kubectl.kubernetes.io/default-container`
2. the only container named `ray-head`, `ray-worker` or `ray`
3. the only container that requests accelerators or has SPOTLADDER_ variables
4. the only container of the pod, or the first one if it alone has a command

KubeRay runs Ray in the first container of a pod, so a Ray template needs no further evidence. Any other template is
refused. The rendered template has the annotation, so a pod has the same program container as its template, whatever an
admission webhook injects.

All other containers, native sidecars included, are *other containers*: they neither end an attempt nor count for its
readiness, and get nothing of the tier or of the checkpoint store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spotladder.api.accelerators import accelerators
from spotladder.api.problems import Path, dotted, quoted
from spotladder.core.contract import PREFIX
from spotladder.errors import InvalidSpec

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
"""The annotation of a pod that names its main container; `kubectl logs` and `kubectl exec` use it, too."""

_RAY_NAMES = frozenset({"ray-head", "ray-worker", "ray"})


def program_of(template: Mapping[str, Any], at: Path) -> dict[str, Any]:
    """The program container of a pod template. `at` is the path of the template in the user's file.

    Raises:
        InvalidSpec: no containers, an annotation that names none of them, or several that may be the program.
    """
    containers = _containers(template, at)
    found = _evident(template, containers, at) or _likely(containers)
    if found is None:
        raise InvalidSpec(
            f"must name the program's container, one of {_names(containers)}: all others are sidecars, which get "
            f'neither resources nor credentials; add the annotation {DEFAULT_CONTAINER}: "NAME"',
            path=dotted((*at, "metadata", "annotations")),
        )
    return found


def ray_of(template: Mapping[str, Any], at: Path) -> dict[str, Any]:
    """The program container of a Ray node's pod template, in which KubeRay must run Ray.

    Raises:
        InvalidSpec: as `program_of`; or only another container than the first requests accelerators.
    """
    containers = _containers(template, at)
    found = _evident(template, containers, at)
    equipped = _only(containers, _is_equipped)
    if found is None and equipped is not None and equipped is not containers[0]:
        first, other = (quoted(str(one.get("name"))) for one in (containers[0], equipped))
        message = (
            f"KubeRay runs Ray in the first container, {first}, but only {other} requests accelerators: put the "
            f"container of Ray first, or name it with the annotation {DEFAULT_CONTAINER}"
        )
        raise InvalidSpec(message, path=dotted((*at, "spec", "containers")))
    return found or containers[0]


def program_name(pod: Mapping[str, Any]) -> str:
    """The name of the program container of an existing pod; "" without containers. Without evidence, for example in a
    pod of another client, it is the first container."""
    containers: Sequence[dict[str, Any]] = (pod.get("spec") or {}).get("containers") or ()
    found = _annotated(pod, containers) or _only(containers, _has_ray_name) or _likely(containers)
    return str((found or next(iter(containers), {})).get("name") or "")


def native_sidecars(pod: Mapping[str, Any]) -> frozenset[str]:
    """The names of the init containers that run beside the program."""
    initial = (pod.get("spec") or {}).get("initContainers") or ()
    return frozenset(one.get("name") or "" for one in initial if one.get("restartPolicy") == "Always")


def _containers(template: Mapping[str, Any], at: Path) -> list[dict[str, Any]]:
    containers = (template.get("spec") or {}).get("containers")
    if not isinstance(containers, list) or not containers:
        message = "is required on a cluster: a list of containers, one of which runs the program"
        raise InvalidSpec(message, path=dotted((*at, "spec", "containers")))
    return containers


def _evident(template: Mapping[str, Any], containers: Sequence[dict[str, Any]], at: Path) -> dict[str, Any] | None:
    """The container that the annotation or its own name marks."""
    named = _annotation(template)
    found = _annotated(template, containers)
    if named and found is None:
        message = f"names no container of the pod, expected one of {_names(containers)}, got {quoted(named)}"
        raise InvalidSpec(message, path=dotted((*at, "metadata", "annotations", DEFAULT_CONTAINER)))
    return found or _only(containers, _has_ray_name)


def _likely(containers: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    if len(containers) == 1:
        return containers[0]
    commanded = [one for one in containers if one.get("command") or one.get("args")]
    first = commanded[0] if len(commanded) == 1 and commanded[0] is containers[0] else None
    return _only(containers, _is_equipped) or (None if any(map(_is_equipped, containers)) else first)


def _annotation(pod: Mapping[str, Any]) -> str:
    return str(((pod.get("metadata") or {}).get("annotations") or {}).get(DEFAULT_CONTAINER) or "")


def _annotated(pod: Mapping[str, Any], containers: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    named = _annotation(pod)
    return next((one for one in containers if named and one.get("name") == named), None)


def _only(containers: Iterable[dict[str, Any]], meets: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    found = [one for one in containers if meets(one)]
    return found[0] if len(found) == 1 else None


def _has_ray_name(container: Mapping[str, Any]) -> bool:
    return container.get("name") in _RAY_NAMES


def _is_equipped(container: Mapping[str, Any]) -> bool:
    """Whether the container requests accelerators or has variables of the contract with the program."""
    claims = (container.get("resources") or {}).get("claims")
    variables = (str(entry.get("name") or "") for entry in container.get("env") or ())
    return bool(accelerators(container) or claims) or any(name.startswith(PREFIX) for name in variables)


def _names(containers: Iterable[dict[str, Any]]) -> str:
    return ", ".join(str(one.get("name")) for one in containers)
