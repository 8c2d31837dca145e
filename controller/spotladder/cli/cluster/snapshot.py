"""A snapshot of a job on a cluster: its state, its Events, and its commit log if this machine can read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spotladder.cli.cluster.connected_cluster import ConnectedCluster, Object
from spotladder.cli.target import Refused

if TYPE_CHECKING:
    from spotladder.api.stored import JobRecord
    from spotladder.core.model import Instant, JobSpec, JobState
    from spotladder.display.records import Committed, Lost, Noted, Recorded, Resized


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A job on a cluster. `uri` is the address of the commit log; `unseen` are tiers whose CapacityTier does not exist
    or cannot be read; `policies` are the names of the policy and of the shadow policy."""

    job: JobRecord
    spec: JobSpec
    state: JobState
    uri: str
    unseen: tuple[str, ...]
    noted: tuple[Lost | Noted, ...]
    policies: tuple[str, str]

    def timeline(self, now: Instant) -> tuple[Recorded, list[str]]:
        """The timeline, and warnings about missing data for the user. Reads the commit log, which may block: do not
        call it on the event loop."""
        from spotladder.display.retrace import retraced

        commits, sizes, why = self._logged()
        job, missing = self.job, [f"commits are missing: {why}"] if why else []
        printed = () if why else self._printed()
        found = retraced(
            job.name,
            job.namespace,
            self.spec,
            self.state,
            commits=commits,
            sizes=sizes,
            noted=self.noted,
            policies=self.policies,
            now=now,
        )
        if self.unseen:
            gap = f"the CapacityTiers of {', '.join(self.unseen)} cannot be read: the tiers are shown as on-demand"
            found = replace(found, gaps=(*found.gaps, f"{gap[0].upper()}{gap[1:]}."))
            missing.append(gap)
        return replace(found, printed=printed), missing

    def _printed(self) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
        """The last lines of the attempts' stored output; empty if it cannot be read."""
        from spotladder.checkpoints import outputs
        from spotladder.checkpoints.open_store import open_store
        from spotladder.checkpoints.store import folder_of
        from spotladder.errors import SpotladderError
        from spotladder.output.last_error import last_lines

        try:
            store = outputs.of_job(folder_of(open_store(self.uri), self.job.name), self.job.uid)
            found = outputs.kept(store)
            texts = outputs.read(store, found)
        except SpotladderError:
            return ()
        return tuple((each.attempt, each.title, last_lines(text)) for each, text in zip(found, texts, strict=True))

    def _logged(self) -> tuple[list[Committed] | None, list[Resized], str]:
        """The commits in the log, the changes of the number of workers, and why the log cannot be read: with a reason,
        the commits are None."""
        from spotladder.checkpoints.log import CommitLog
        from spotladder.checkpoints.open_store import open_store
        from spotladder.display.records import Committed, Resized
        from spotladder.errors import SpotladderError

        progress, job = self.state.progress, self.job
        if progress.committed_at is None and not progress.workers:
            return [], [], ""  # the job has no commits, and no program of an elastic job has started
        try:
            past = CommitLog(open_store(self.uri), job.name, namespace=job.namespace, uid=job.uid).past()
        except SpotladderError as error:
            return None, [], str(error)
        if not past.commits and progress.committed_at is not None:
            return None, [], f"{self.uri}: no commits found from this machine"
        sizes = [Resized.of(one.at, one.attempt, one.workers, self.spec) for one in past.sizes]
        return [Committed.of(commit) for commit in past.commits], sizes, ""


async def snapshot_of(cluster: ConnectedCluster, job: Object) -> JobSnapshot:
    """Read the job from the cluster. Raises Refused if the job is invalid."""
    from spotladder.api.stored import JobRecord, state_of, status_of
    from spotladder.cli.cluster import events
    from spotladder.cli.cluster.capacity_tiers import capacity_in, spec_in
    from spotladder.errors import InvalidSpec

    record = JobRecord.of(job)
    capacity = await capacity_in(cluster)
    try:
        spec = spec_in(record, capacity.get)
    except InvalidSpec as error:
        why = "; ".join(str(error).splitlines())
        raise Refused(f"tieredjob {record.name} is invalid, so it has no report: {why}") from None
    state = state_of(status_of(record))
    uri = job["spec"]["checkpoints"]["uri"]
    unseen = tuple(tier for tier, named in record.tiers if named not in capacity)
    chosen = job["spec"].get("policy") or {}
    policies = chosen.get("name") or "ordered", chosen.get("shadow") or ""
    return JobSnapshot(record, spec, state, uri, unseen, tuple(_noted(await events.of_job(cluster, job))), policies)


def _noted(found: Iterable[Object]) -> Iterator[Lost | Noted]:
    """The Events with information that the state does not have: failures, recoveries and impediments."""
    from spotladder.api.loss_events import loss_of
    from spotladder.cli.cluster.events import when
    from spotladder.core.model import Stage
    from spotladder.core.reasons import Reason
    from spotladder.display.records import Lost, Noted

    more = (Stage.REPLACING, Stage.RECOVERING, Stage.DRAINING)
    for event in found:
        reason, action, message = event.get("reason", ""), event.get("action", ""), event.get("message", "")
        if loss := loss_of(reason, action, message):
            yield Lost(when(event), loss, 0)
        elif reason not in set(Reason) or action in more:
            yield Noted(when(event), f"{reason}: {message}")
