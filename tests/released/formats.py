"""The files that the current version writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from spotladder.api.crds import crds
from spotladder.checkpoints.entries import Commit, Drop, End, Entry, Snapshot, Start, encode
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.core.contract import VARIABLES, ExitCode, Notice, NoticeKind
from spotladder.core.model import Impeded, JobState
from spotladder.core.model.codec import dump
from spotladder.core.reasons import Cause, Reason
from spotladder.records.model import encode as encode_record
from spotladder.records.recorded import KINDS
from tests.released.samples import sample

FOLDER = Path(__file__).parent
VERSIONS = sorted(path.name for path in FOLDER.iterdir() if path.name[0].isdigit())
CURRENT = "0.1.0"


def written() -> dict[str, str]:
    """The content of each file, by its name."""
    state = replace(sample(JobState), impeded=Impeded(Reason.WAITING_FOR_CAPACITY, 1.5))
    kinds: tuple[type[Entry], ...] = (Start, Commit, Drop, End, Snapshot)
    entries = [replace(sample(kind), seq=seq) for seq, kind in enumerate(kinds)]
    return {
        "state.json": dump(state) + "\n",
        "log.jsonl": "".join(encode(entry).decode() for entry in entries),
        "records.jsonl": "".join(encode_record(sample(kind)) + "\n" for kind in KINDS.values()),
        "heartbeat.json": json.dumps(asdict(sample(StoredHeartbeat))) + "\n",
        "notice.json": sample(Notice).encode() + "\n",
        "names.json": json.dumps(names(), indent=1, sort_keys=True) + "\n",
        "crds.txt": "".join(f"{line}\n" for line in innermost(crd_fields())),
    }


def names() -> dict[str, Any]:
    """The names and values on which programs, controllers and users agree."""
    return {
        "variables": {name: name for name in VARIABLES},
        "exit codes": {code.name: code.value for code in ExitCode},
        "notices": {kind.name: kind.value for kind in NoticeKind},
        "reasons": {reason.value: reason.value for reason in Reason},
        "causes": {cause.value: cause.value for cause in Cause},
    }


def crd_fields() -> list[str]:
    """The fields of the custom resources with their types."""
    return sorted(
        line
        for crd in crds()
        for version in crd["spec"]["versions"]
        for line in _fields(f"{crd['spec']['names']['kind']}/{version['name']}", version["schema"]["openAPIV3Schema"])
    )


def innermost(fields: list[str]) -> list[str]:
    """The fields without fields of their own. The place of each names those around it."""
    places = [field.partition(": ")[0] for field in fields]
    around = {place[: match.start()] for place in places for match in re.finditer(r"[.[]", place)}
    return [field for field, place in zip(fields, places, strict=True) if place not in around]


def _fields(place: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"{place}: {schema.get('type', 'any')}"
    for name, inner in (schema.get("properties") or {}).items():
        yield from _fields(f"{place}.{name}", inner)
    for suffix, inner in (("[]", schema.get("items")), (".*", schema.get("additionalProperties"))):
        if isinstance(inner, dict):
            yield from _fields(place + suffix, inner)
