"""Writes the Terraform stacks of a fleet: one folder with a `cdk.tf.json` for each cluster that is created.

`terraform -chdir=OUT/stacks/CLUSTER init|plan|apply` works on such a folder as on any other configuration.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from spotladder.errors import InvalidSpec
from spotladder.extras import require
from spotladder_infra import outputs
from spotladder_infra.stacks import node
from spotladder_infra.topology.cluster import WITH_STACK, Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet

TERRAFORM_VERSION = ">= 1.11.0"
CONTEXT: dict[str, Any] = {
    "excludeStackIdFromLogicalIds": True,
    "allowSepCharsInLogicalIds": True,
    "targetVersions": {"terraform": ">=1.11.0", "opentofu": ">=1.11.0"},
}
LAZY_BINDINGS = Path(__file__).with_name("lazy_bindings.cjs")

BINDINGS = {Cloud.AWS: "cdktn_aws", Cloud.GCP: "cdktn_provider_google"}
STACKS = {Cloud.AWS: "spotladder_infra.stacks.eks", Cloud.GCP: "spotladder_infra.stacks.gke"}


def synth(fleet: Fleet, clusters: Sequence[Cluster], out: Path, state: Path) -> list[Path]:
    """Writes the stacks of these clusters and returns their folders.

    Args:
        clusters: The clusters; existing clusters have no stack and are skipped.
        out: Folder for the stacks; the stacks of an earlier run are replaced.
        state: Folder for the state of fleets that keep it in local files.

    Raises:
        EnvironmentFailure: A package or Node.js is missing.
    """
    wanted = [cluster for cluster in clusters if cluster.cloud in WITH_STACK]
    if not wanted:
        return []
    require("infra", "cdktn", *sorted({BINDINGS[cluster.cloud] for cluster in wanted}))
    cdktn = _cdktn()
    app = cdktn.App(outdir=str(out.absolute()), context=CONTEXT)
    for cluster in wanted:
        stack = cdktn.TerraformStack(app, cluster.name)
        stack.add_override("terraform.required_version", TERRAFORM_VERSION)
        found = import_module(STACKS[cluster.cloud]).build(stack, fleet, cluster)
        cdktn.TerraformOutput(
            stack,
            outputs.NAME,
            value=outputs.written(found),
            description=f"Contract {outputs.VERSION} with the platform layer",
        )
        _backend(cdktn, stack, fleet, cluster, state)
    app.synth()
    return [out / "stacks" / cluster.name for cluster in wanted]


def read_stack(out: Path, cluster: str) -> dict[str, Any]:
    """The stack of a cluster, as `synth` wrote it below `out`. Raises InvalidSpec if `synth` has not written it."""
    path = out / "stacks" / cluster / "cdk.tf.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        message = "is not a stack: write it with spotladder infra synth (only clusters of aws and gcp have one)"
        raise InvalidSpec(message, where=str(path)) from None
    return found


def local_state(cluster: Cluster, state: Path) -> Path:
    """The file with Terraform's state of a cluster, if the fleet has no `spec.state`."""
    return state.absolute() / f"{cluster.name}.tfstate"


def _cdktn() -> Any:
    """The module cdktn. Importing it starts Node.js, which loads modules of the bindings on first use."""
    with node.chosen(f'--require="{LAZY_BINDINGS.as_posix()}"'):
        return import_module("cdktn")


def _backend(cdktn: Any, stack: Any, fleet: Fleet, cluster: Cluster, state: Path) -> None:
    where = fleet.spec.state
    if where is None:
        cdktn.LocalBackend(stack, path=str(local_state(cluster, state)))
        return
    scheme, _, rest = where.uri.partition("://")
    bucket, _, prefix = rest.partition("/")
    name = "/".join(part for part in (prefix, fleet.metadata.name, cluster.name) if part)
    if scheme == "s3":
        cdktn.S3Backend(
            stack, bucket=bucket, key=f"{name}.tfstate", region=where.region, encrypt=True, use_lockfile=True
        )
    else:
        cdktn.GcsBackend(stack, bucket=bucket, prefix=name)
