"""A valid job file, a valid world file, and the error messages for changed ones."""

from __future__ import annotations

from pathlib import Path

from spotladder.api.check import checked
from spotladder.api.document import documents_of
from spotladder.api.read import kind_of
from spotladder.errors import InvalidSpec

JOB = """\
apiVersion: spotladder.io/v1alpha1
kind: TieredJob
metadata:
  name: digits
  namespace: team-a
spec:
  tiers:
  - name: spot-a
    capacityTier: g5-spot-use1a
    maxFailures: 3
    provisionTimeout: 10m
  - name: on-demand
    capacityTier: g5-od-use1
    maxFailures: 1
    provisionTimeout: 30m
  grace: 90s
  handover: Fenced
  checkpoints:
    uri: s3://bucket/prefix
    interval: 5m
  suspend: false
  workload:
    ray:
      template:
        spec:
          entrypoint: python train.py
          rayClusterSpec:
            workerGroupSpecs:
            - groupName: workers
              replicas: 2
"""

WORLD = """\
pools:
  g5-spot-use1a:
    capacityType: spot
    nodes: 2
    price: {perNodeHour: "0.42", onDemandPerNodeHour: 1.41}
    provisionDelay: 2s
    notice: 5s
    interruptions: {at: [20s, 45s]}
    unavailable: [{from: 60s, to: 120s}]
  g5-od-use1:
    nodes: 2
    price: {perNodeHour: 1.41}
"""


TIERS = """\
  - name: spot-a
    capacityTier: g5-spot-use1a
    maxFailures: 3
    provisionTimeout: 10m
  - name: on-demand
    capacityTier: g5-od-use1
    maxFailures: 1
    provisionTimeout: 30m
"""
"""The tiers of JOB."""


def changed(text: str, *changes: tuple[str, str]) -> str:
    """The text with each old part, which must occur once, replaced by the new one."""
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    return text


def said_about(text: str, file: str = "job.yaml") -> list[str]:
    """The error lines for this text; empty if it is valid."""
    try:
        for document in documents_of(text, file):
            checked(document, kind_of(document))
    except InvalidSpec as error:
        return str(error).splitlines()
    return []


def written(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file
