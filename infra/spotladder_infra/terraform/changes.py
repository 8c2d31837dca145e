"""Summary of a plan: how many resources are created, changed, replaced and deleted, by concern. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

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
    ("aws_ecr_", "images"),
    ("google_artifact_registry_", "images"),
    ("aws_", "network"),
    ("google_compute_", "network"),
)
"""The first prefix that matches a resource's type decides; all other AWS types belong to the VPC."""

ORDER = tuple(dict.fromkeys(concern for _, concern in _CONCERNS))


WORDS = {
    Action.CREATE: "create",
    Action.UPDATE: "change",
    Action.REPLACE: "replace",
    Action.DELETE: "delete",
    Action.FORGET: "forget",
}


def concern_of(address: str) -> str:
    """The part of a cluster that a resource belongs to."""
    kind = address.rpartition("module.")[2].partition(".")[0]
    return next((concern for prefix, concern in _CONCERNS if kind.startswith(prefix)), OTHER)


def lost_of_existing(planned: Iterable[Planned]) -> list[str]:
    """The addresses of resources that are deleted and that no stack of an existing cluster has."""
    ends = {Action.DELETE, Action.REPLACE}
    return [
        entry.address
        for entry in planned
        if entry.action in ends and concern_of(entry.address) in ("control plane", "nodes", "network")
    ]


def by_concern(planned: Iterable[Planned]) -> list[tuple[str, ...]]:
    """The plan's rows in a fixed order, without unchanged concerns: the concern and the number of each of WORDS."""
    counts = Counter((concern_of(entry.address), entry.action) for entry in planned)
    concerns = {concern for concern, _ in counts}
    return [
        (concern, *(str(counts[concern, action]) for action in WORDS))
        for concern in (*ORDER, OTHER)
        if concern in concerns
    ]


def counted(planned: Iterable[Planned]) -> str:
    """The plan as text: "94 to create, 1 to change"; "no change" for an empty one."""
    counts = Counter(entry.action for entry in planned)
    return ", ".join(f"{counts[action]} to {word}" for action, word in WORDS.items() if counts[action]) or "no change"
