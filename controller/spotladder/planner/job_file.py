"""Writes proposed settings into the text of a job file. Comments, quotes and all other fields stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from spotladder.api.check import checked
from spotladder.api.document import documents_of
from spotladder.api.tieredjob import TieredJob
from spotladder.core.durations import format_duration
from spotladder.core.model import Seconds, Tier

WIDEST = 4096
"""Line width up to which a value is not folded."""


def with_settings(
    text: str, file: str, before: Sequence[Tier], after: Sequence[Tier], commit_interval: Seconds | None = None
) -> str:
    """The job file with its tiers in the order of `after`, and with the settings that differ from `before`.

    `commit_interval` is in seconds; None keeps the job's. Raises InvalidSpec, located at `file`, if the result is not a
    valid TieredJob.
    """
    yaml: Any = YAML()
    yaml.preserve_quotes, yaml.width = True, WIDEST
    data = yaml.load(text)
    entries = {str(entry["name"]): entry for entry in data["spec"]["tiers"]}
    known = {tier.name: tier for tier in before}
    for tier in after:
        entry, old = entries[tier.name], known[tier.name]
        if tier.max_failures != old.max_failures:
            entry["maxFailures"] = tier.max_failures
        if tier.provision_timeout != old.provision_timeout:
            entry["provisionTimeout"] = format_duration(tier.provision_timeout)
    data["spec"]["tiers"][:] = [entries[tier.name] for tier in after]
    if commit_interval is not None:
        data["spec"]["checkpoints"]["interval"] = format_duration(commit_interval)
    written = StringIO()
    yaml.dump(data, written)
    checked(documents_of(written.getvalue(), file)[0], TieredJob)
    return written.getvalue()
