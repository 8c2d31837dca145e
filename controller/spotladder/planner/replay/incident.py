"""A replay as a file: its job, program, capacity and policy, and the path that the job took.

The file is a regression test: `differences` runs it again and compares the paths. A later version that decides
otherwise in the same situation shows up as a difference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spotladder.core.model import JobSpec, Price
from spotladder.core.plain import from_plain, to_plain
from spotladder.errors import InvalidSpec
from spotladder.sim.scenario import Scenario, simulate
from spotladder.sim.trace import Trace
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.run import DecidedMove, SimulationOutcome
from spotladder.sim.world.zone import ZonePlan

FORMAT = "spotladder.replay/v1"
"""Version of the file. Fields are only added within one version."""

DAMAGE = (ValueError, TypeError, KeyError, AttributeError, IndexError)


@dataclass(frozen=True, slots=True)
class Incident:
    """A replay with the path that it took: each transition in one line."""

    scenario: Scenario
    policy: str
    path: tuple[str, ...]


def lines_of(path: Sequence[DecidedMove]) -> tuple[str, ...]:
    """Each transition as one line: its time, stages, reason, attempt and tier."""
    return tuple(
        f"{step.at:.3f} s: {step.move.source} → {step.move.target} ({step.move.reason}), attempt {step.move.attempt} "
        f"on {step.move.tier}"
        for step in path
    )


def written(scenario: Scenario, policy: str, outcome: SimulationOutcome) -> str:
    """The file. The zones of the scenario have one trace each, or none."""
    zones = [
        {
            "name": zone.name,
            "readyAfterSeconds": zone.provision_delay,
            "noticeSeconds": zone.notice,
            "price": to_plain(zone.price, full=True),
            "changes": [] if zone.trace is None else list(map(list, zip(*_changes(zone.trace), strict=True))),
            "prices": [] if zone.trace is None or zone.trace.prices is None else zone.trace.prices.tolist(),
        }
        for zone in scenario.zones
    ]
    document = {
        "format": FORMAT,
        "policy": policy,
        "spec": to_plain(scenario.spec, full=True),
        "program": to_plain(scenario.program, full=True),
        "measured": scenario.measured,
        "zones": zones,
        "path": list(lines_of(outcome.path)),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _changes(trace: Trace) -> tuple[list[float], list[int]]:
    return trace.times.tolist(), trace.nodes.tolist()


def read(file: Path) -> Incident:
    """The replay in a file. Raises InvalidSpec, located at the file."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSpec(f"cannot be read: {error.strerror or error}; check its path", where=str(file)) from None
    except ValueError as error:
        raise InvalidSpec(f"is not JSON ({error}): specify a file of --to", where=str(file)) from None
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise InvalidSpec(f"expected {FORMAT}, got {found!r}: specify a file of --to", path="format", where=str(file))
    try:
        return _incident(document)
    except DAMAGE as error:
        raise InvalidSpec(f"is damaged ({type(error).__name__}: {error}): write it again", where=str(file)) from None


def differences(incident: Incident) -> list[str]:
    """The first transition that differs from the recorded path, and how; empty if the paths are equal."""
    found = lines_of(simulate(incident.scenario, incident.policy, 0).path)
    for index, (was, now) in enumerate(zip(incident.path, found, strict=False)):
        if was != now:
            return [f"transition {index + 1} was {was}", f"transition {index + 1} is {now}"]
    if len(found) != len(incident.path):
        longer = incident.path if len(incident.path) > len(found) else found
        kind = "is missing" if longer is incident.path else "is new"
        shorter = min(len(found), len(incident.path))
        return [f"transition {shorter + 1} {kind}: {longer[shorter]}"]
    return []


def _incident(document: dict[str, Any]) -> Incident:
    spec: JobSpec = from_plain(JobSpec, document["spec"], lenient=True)
    zones = tuple(map(_zone, document["zones"]))
    tiers = {tier.name: tier.name for tier in spec.tiers}
    program = from_plain(ProgramPlan, document["program"], lenient=True)
    # A file without the field has the path of a job that knew its work from the start.
    scenario = Scenario(spec, program, zones, tiers, measured=bool(document.get("measured", False)))
    return Incident(scenario, str(document["policy"]), tuple(map(str, document["path"])))


def _zone(entry: dict[str, Any]) -> ZonePlan:
    price: Price = from_plain(Price, entry["price"], lenient=True)
    name, delay, notice = str(entry["name"]), float(entry["readyAfterSeconds"]), float(entry["noticeSeconds"])
    plan = ZonePlan(name, None, price, delay, notice=notice)
    if not entry["changes"]:
        return plan
    times, nodes = zip(*entry["changes"], strict=True)
    # A file of an earlier version has no prices of each change.
    usd = np.array(entry["prices"], dtype=np.float64) if entry.get("prices") else None
    trace = Trace(name, np.array(times, dtype=np.float64), np.array(nodes, dtype=np.int64), math.inf, prices=usd)
    return replace(plan, trace=trace)
