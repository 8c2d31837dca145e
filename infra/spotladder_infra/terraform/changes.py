"""Summary of a plan: how many resources are created, changed, replaced and deleted, by concern. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from spotladder_infra.terraform.events import Action, Planned

OTHER = "other"

_CONCERNS: tuple[tuple[str, str], ...] = (
    ("aws_iam_", "identity"),
    ("aws_eks_pod_identity", "identity"),
    ("aws_eks_access", "identity"),
    ("google_service_account", "identity"),
    ("google_project_iam", "identity"),
    ("google_storage_bucket_iam", "identity"),
    ("google_kms_crypto_key_iam", "identity"),
    ("google_artifact_registry_repository_iam", "identity"),
    ("aws_eks_cluster", "control plane"),
    ("aws_cloudwatch_log_group", "control plane"),
    ("google_container_cluster", "control plane"),
    ("aws_eks_", "nodes"),
    ("aws_launch_template", "nodes"),
    ("google_container_node_pool", "nodes"),
    ("aws_sqs_", "interruption notices"),
    ("aws_cloudwatch_event", "interruption notices"),
    ("aws_s3_", "checkpoints"),
    ("google_storage_", "checkpoints"),
    ("aws_kms_", "keys"),
    ("google_kms_", "keys"),
    ("aws_budgets_", "budget"),
    ("google_artifact_registry_", "images"),
    ("aws_", "network"),
    ("google_compute_", "network"),
)
"""The first prefix that matches a resource's type decides; all other AWS types belong to the VPC."""

ORDER = tuple(dict.fromkeys(concern for _, concern in _CONCERNS))


@dataclass(frozen=True, slots=True)
class Line:
    """One concern of a plan; counts of resources."""

    concern: str
    created: int
    changed: int
    replaced: int
    deleted: int


def concern_of(address: str) -> str:
    """The part of a cluster that a resource belongs to."""
    kind = address.rpartition("module.")[2].partition(".")[0]
    return next((concern for prefix, concern in _CONCERNS if kind.startswith(prefix)), OTHER)


def by_concern(planned: Iterable[Planned]) -> list[Line]:
    """The plan's lines in a fixed order, without unchanged concerns."""
    counts = Counter((concern_of(entry.address), entry.action) for entry in planned)
    lines = [
        Line(
            concern,
            counts[concern, Action.CREATE],
            counts[concern, Action.UPDATE],
            counts[concern, Action.REPLACE],
            counts[concern, Action.DELETE],
        )
        for concern in (*ORDER, OTHER)
    ]
    return [line for line in lines if line.created or line.changed or line.replaced or line.deleted]


def counted(planned: Iterable[Planned]) -> str:
    """The plan as text: "94 to create, 1 to change"; "no change" for an empty one."""
    counts = Counter(entry.action for entry in planned)
    words = {
        Action.CREATE: "create",
        Action.UPDATE: "change",
        Action.REPLACE: "replace",
        Action.DELETE: "delete",
        Action.FORGET: "forget",
    }
    return ", ".join(f"{counts[action]} to {word}" for action, word in words.items() if counts[action]) or "no change"
