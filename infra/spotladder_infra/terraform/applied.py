"""The stacks of a fleet for Terraform's commands, and the outputs of their last apply."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spotladder.atomic import write_text
from spotladder.errors import EnvironmentFailure
from spotladder_infra import outputs as contract
from spotladder_infra.checkpoints import resources as of_bucket
from spotladder_infra.names import HOME_EGRESS, OWNER
from spotladder_infra.outputs import ClusterOutputs
from spotladder_infra.stacks.synth import local_state, synth
from spotladder_infra.terraform.events import Planned
from spotladder_infra.terraform.providers import lock_file
from spotladder_infra.terraform.stack import TerraformStack
from spotladder_infra.terraform.tool import environment_of_runs, find
from spotladder_infra.topology.cluster import WITH_STACK, Cluster
from spotladder_infra.topology.defaults import reached_over_the_internet
from spotladder_infra.topology.fleet import Fleet

HOME_VARIABLES = "home.auto.tfvars.json"
"""The file with the variable HOME_EGRESS, which Terraform reads by itself."""

_SYNTH = threading.Lock()
"""Held while cdktn writes the stacks: it is not thread-safe, and a rollout uses several threads."""


def stacks_of(
    fleet: Fleet,
    clusters: Sequence[Cluster],
    out: Path,
    state: Path,
    *,
    on_interrupt: Callable[[], None] | None = None,
) -> list[TerraformStack]:
    """Writes the stacks of these clusters, in the order of the file; existing clusters have none.

    Args:
        out: Folder for the stacks.
        state: Folder for data that is kept between runs: local state, outputs, versions of providers.
        on_interrupt: Called when a running command was asked to stop.

    Raises:
        EnvironmentFailure: Terraform or a package is missing, or the resources of a cluster are in a local state that
            is that of another fleet, or that the fleet file no longer names.
    """
    created = [cluster for cluster in clusters if cluster.cloud in WITH_STACK]
    if not created:
        return []
    tool, environment = find(), environment_of_runs()
    _read_home(fleet, created, out, state)
    folders = synth(fleet, created, out, state)
    found = [
        TerraformStack(
            tool,
            folder.absolute(),
            cluster.name,
            environment,
            lock_file=lock_file(cluster.cloud, state.absolute()),
            on_interrupt=on_interrupt,
        )
        for cluster, folder in zip(created, folders, strict=True)
    ]
    for cluster, stack in zip(created, found, strict=True):
        _refuse_local_state(fleet, cluster, stack, state)
        write_home(fleet, stack, state)
    return found


def _refuse_local_state(fleet: Fleet, cluster: Cluster, stack: TerraformStack, state: Path) -> None:
    """Raises EnvironmentFailure if Terraform would delete the resources of another fleet, whose local state this is, or
    create those of this fleet again, because its state has moved without its content."""
    path = local_state(cluster, state)
    resources = json.loads(path.read_bytes() or b"{}").get("resources") if path.exists() else None
    owners = _owners(resources or ())
    if owners and fleet.metadata.name not in owners:
        raise EnvironmentFailure(
            f"cluster {cluster.name}: the resources in {path} belong to fleet {min(owners)}, not to "
            f"{fleet.metadata.name}: run this fleet in another folder, or with another --state"
        )
    if fleet.spec.state is None or not resources:
        return
    steps = (
        stack.command("init", "-reconfigure"),
        stack.command("state", "push", str(path)),
        shlex.join(["mv", str(path), f"{path}.moved"]),
    )
    raise EnvironmentFailure(
        f"cluster {cluster.name}: its resources are in the local state {path}, not in {fleet.spec.state.uri}: move "
        f"them: {' && '.join(steps)}"
    )


def _owners(resources: Iterable[dict[str, Any]]) -> set[str]:
    """The fleets that the tags or labels of the resources of a state name, without the checkpoint bucket, which may be
    imported from another fleet."""
    own = (entry for entry in resources if entry["mode"] == "managed" and not of_bucket([f".{entry['name']}"]))
    attributes = (instance.get("attributes", {}) for entry in own for instance in entry.get("instances", ()))
    tags = (found.get("tags_all") or found.get("effective_labels") or {} for found in attributes)
    return {found[OWNER] for found in tags if OWNER in found}


def write_home(fleet: Fleet, stack: TerraformStack, state: Path) -> bool:
    """Writes the recorded addresses of the home cluster into the folder of a member's stack, which allows them to
    connect to its API server. Returns whether they have changed: a stored plan has the old ones.
    """
    cluster, home = fleet.cluster(stack.cluster), fleet.cluster(fleet.spec.home)
    if home.cloud not in WITH_STACK or not reached_over_the_internet(fleet, cluster):
        return False
    path = stack.folder / HOME_VARIABLES
    recorded = path_of(home.name, state)
    known = contract.read(json.loads(recorded.read_text(encoding="utf-8")), home.name) if recorded.exists() else None
    addresses = known.egress if known is not None else []
    text = json.dumps({HOME_EGRESS: [f"{address}/32" for address in addresses]})
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    write_text(path, text)
    return True


def _read_home(fleet: Fleet, clusters: Sequence[Cluster], out: Path, state: Path) -> None:
    """Records the outputs of the home cluster, if a stack of these clusters needs them: another machine may have
    changed or deleted it since they were recorded here."""
    home = fleet.cluster(fleet.spec.home)
    needed = any(reached_over_the_internet(fleet, cluster) for cluster in clusters)
    if needed and home.cloud in WITH_STACK:
        stack = stacks_of(fleet, [home], out, state)[0]
        stack.init()
        if stack.output() is not None:
            record(stack, state)
        else:
            discard(home.name, state)


def planned(stack: TerraformStack) -> list[Planned]:
    """The plan of a stack, which is kept in its folder for `TerraformStack.apply`. Raises EnvironmentFailure."""
    stack.init()
    stack.drop_plan()
    return stack.plan()


def outputs(fleet: Fleet, cluster: Cluster, out: Path, state: Path) -> ClusterOutputs:
    """The outputs of a created cluster's stack for the platform layer.

    Read from the file that `bootstrap` wrote below `state` or, if that is missing, from Terraform's state.

    Raises:
        EnvironmentFailure: The stack was never applied, its outputs have another version or are those of another
            cluster, or Terraform fails.
    """
    if cluster.cloud not in WITH_STACK:
        raise EnvironmentFailure(f"cluster {cluster.name}: is not created here, so its stack has no outputs")
    path = path_of(cluster.name, state)
    try:
        found = contract.read(json.loads(path.read_text(encoding="utf-8")), cluster.name)
    except (OSError, ValueError):
        with _SYNTH:
            stack = stacks_of(fleet, [cluster], out, state)[0]
            stack.init()
            found = record(stack, state)
    return contract.require(found, fleet, cluster)


def record(stack: TerraformStack, state: Path) -> ClusterOutputs:
    """Writes the outputs of an applied stack below `state` and returns them."""
    found = stack.output()
    if found is None:
        raise EnvironmentFailure(f"cluster {stack.cluster}: does not exist: run spotladder infra bootstrap")
    read = contract.read(found, stack.cluster)
    path = path_of(stack.cluster, state)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(contract.written(read), indent=2) + "\n")
    return read


def discard(cluster: str, state: Path) -> None:
    """Removes the outputs of a deleted cluster."""
    with suppress(FileNotFoundError):
        path_of(cluster, state).unlink()


def path_of(cluster: str, state: Path) -> Path:
    """The path of the file with the outputs of a cluster."""
    return state / "outputs" / f"{cluster}.json"
