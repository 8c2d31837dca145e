"""The part of a TieredJob that is the same for all sources: name, tiers, checkpoints, and the program's comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from spotladder.api.fields import LONGEST_JOB_NAME
from spotladder.api.problems import Path
from spotladder.api.record import API_VERSION, SET_BY_KUBERNETES
from spotladder.conversion.draft import Draft, plain
from spotladder.conversion.source import Options, Source

DEFAULT_TIERS = ("spot", "on-demand")
_PLACEHOLDER = "s3://my-bucket/checkpoints"
_LOSSES = 2
"""`maxFailures` of all tiers but the last."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def draft_of(source: Source, options: Options, field: str, spec: dict[str, Any]) -> Draft:
    """A draft with this workload: `field` is `ray` or `jobSet`, `spec` the spec of its template."""
    metadata = source.data.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, Mapping) else {}
    about = {"name": _job_name(source.name or source.kind)}
    if namespace := metadata.pop("namespace", None):
        about["namespace"] = namespace
    made: dict[str, Any] = {}
    for name in ("labels", "annotations"):
        if entries := {key: value for key, value in (metadata.pop(name, None) or {}).items() if key != _LAST_APPLIED}:
            made[name] = entries
    draft = Draft({
        "apiVersion": API_VERSION,
        "kind": "TieredJob",
        "metadata": about,
        "spec": {
            "tiers": _tiers(options.tiers or DEFAULT_TIERS),
            "handover": "WhenGone",
            "checkpoints": {"uri": options.checkpoints or _PLACEHOLDER},
            "workload": {field: {"template": {**({"metadata": made} if made else {}), "spec": spec}}},
        },
    })  # fmt: skip
    draft.heading.append(
        f"Converted from the {source.kind} {source.name or 'without a name'} ({source.where()}) by spotladder convert."
    )
    if about["name"] != source.name:
        was = f'Was "{plain(source.name)}": ' if source.name else "The source has no name: "
        draft.note(
            ("metadata", "name"), f"{was}names have at most {LONGEST_JOB_NAME} lower-case letters, digits and '-'."
        )
    _explain(draft, options)
    live = [name for name in sorted(SET_BY_KUBERNETES) if metadata.pop(name, None) is not None]
    live += [_LAST_APPLIED] if _LAST_APPLIED in (source.data.get("metadata") or {}).get("annotations", {}) else []
    live += ["status"] if source.data.get("status") else []
    if live:
        draft.dropped(f"Removed fields that the cluster sets: {', '.join(live)}.")
    for name in ("name", "generateName"):
        metadata.pop(name, None)
    for name, value in metadata.items():
        draft.dropped(f"Removed metadata.{name}: {plain(value)}. It is not a field of TieredJobs.")
    return draft


def program_note(draft: Draft, at: Path) -> None:
    """Say at the program's command what a loss means for it."""
    draft.note(
        at,
        "The program starts again after each loss. It begins from the start unless it resumes with spotladder.train "
        "(docs/training-script.md).",
    )


def leftovers(
    draft: Draft, fields: Mapping[str, Any], where: str, why: str = "has no equivalent in a TieredJob"
) -> None:
    """Report the remaining fields of a source at the head of the file."""
    for name, value in fields.items():
        if value not in (None, {}, []):
            draft.dropped(f"Removed {where}{name}: {plain(value)}. It {why}.")


def _tiers(names: Iterable[str]) -> list[dict[str, Any]]:
    tiers: list[dict[str, Any]] = [
        {"name": name, "capacityTier": name, "maxFailures": _LOSSES, "provisionTimeout": "10m"} for name in names
    ]
    tiers[-1] = {key: value for key, value in tiers[-1].items() if key != "provisionTimeout"} | {"maxFailures": -1}
    return tiers


def _explain(draft: Draft, options: Options) -> None:
    assumed = "" if options.tiers else " spot and on-demand are assumed names: use --tier, or edit them."
    draft.note(("spec", "tiers"), f"CapacityTiers of the cluster, in order of use.{assumed}")
    draft.note(
        ("spec", "handover"),
        "The next attempt starts when the previous one is gone. Remove this line when the program commits with "
        "spotladder.train, which fences the previous attempt.",
    )
    if not options.checkpoints:
        draft.note(
            ("spec", "checkpoints", "uri"),
            "A placeholder: name a bucket that all pods and the controller reach, or use --checkpoints.",
        )


def _job_name(given: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", given.lower()).strip("-").lstrip("0123456789-")
    return name[:LONGEST_JOB_NAME].strip("-") or "job"
