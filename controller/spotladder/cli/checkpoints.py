"""`spotladder checkpoints`: inspects the commit log of a job, verifies its checkpoints and deletes old ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

import typer

from spotladder.checkpoints import outputs
from spotladder.checkpoints.entries import Commit, Entry
from spotladder.checkpoints.garbage import garbage
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import Store, StoreRefused, folder_of
from spotladder.checkpoints.store_check import StoreUnsafe, check_store
from spotladder.cli.invocation import refuse_without_command
from spotladder.cli.output import Format, OutputOption, print_result
from spotladder.display.figures import numbered
from spotladder.errors import CheckpointCorrupt, InvalidSpec, StoreUnavailable
from spotladder.timestamps import utc_timestamp

CORRUPT = 5

app = typer.Typer(add_completion=False)

UriArgument = Annotated[str, typer.Argument(metavar="URI", help="s3://…, gs://…, az://…, file:///… or a folder.")]
StepOption = Annotated[int | None, typer.Option("--step", help="Only the commit of this step.")]


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    """Inspect the commit log of a job, verify its checkpoints, and delete old ones.

    URI is a job's folder (its checkpoints.uri, a slash, its name), or the parent folder if it contains only one job.

    \b
    Examples:
      spotladder checkpoints ls s3://bucket/prefix/digits
      spotladder checkpoints verify ./checkpoints
      spotladder checkpoints gc s3://bucket/prefix/digits --keep 2 --dry-run
    """
    refuse_without_command(context)


@app.command("ls")
def list_commits(uri: UriArgument, output: OutputOption = Format.TABLE) -> None:
    """List the commits from which the job can resume, oldest first.

    \b
    Example:
      spotladder checkpoints ls s3://bucket/prefix/digits
    """
    log = _open(uri)
    commits = log.commits()
    rows = [
        [
            f"{c.step}",
            f"{c.attempt}",
            c.tier,
            utc_timestamp(c.at),
            f"{len(c.files)}",
            _size(c.size),
            _metrics(c),
            c.path,
        ]
        for c in commits
    ]
    columns = ["step", "attempt", "tier", "committed", "files", "size", "metrics", "path"]
    print_result(output, [_commit(commit) for commit in commits], columns, rows, log.uri)


@app.command(short_help="Show the entries of the log.")
def show(uri: UriArgument, step: StepOption = None, output: OutputOption = Format.TABLE) -> None:
    """Show the log: the job, its outcome and every entry; with --step the files of one commit.

    \b
    Examples:
      spotladder checkpoints show s3://bucket/prefix/digits
      spotladder checkpoints show s3://bucket/prefix/digits --step 1200 --output json
    """
    log = _open(uri)
    if step is not None:
        commit = _chosen(log, step)[-1]
        data = _commit(commit) | {"files": [_fields(file) for file in commit.files]}
        rows = [[file.name, str(file.size), file.crc] for file in commit.files]
        print_result(output, data, ["file", "bytes", "crc32"], rows, f"{log.uri}/{commit.path}")
        return
    history, entries = log.read(), log.tail()
    outcome = history.end.outcome if history.end else ""
    data = {
        "uri": log.uri,
        "job": history.owner.job,
        "namespace": history.owner.namespace,
        "attempt": history.attempt,
        "outcome": outcome or None,
        "entries": [_fields(entry) for entry in entries],
    }
    title = f"{log.uri}: job {history.owner}, attempt {history.attempt}" + (f", {outcome}" if outcome else "")
    rows = [[str(entry.seq), entry.kind, utc_timestamp(entry.at), _described(entry)] for entry in entries]
    print_result(output, data, ["entry", "kind", "at", "what"], rows, title)


@app.command(short_help="Compare the files of all commits with the log.")
def verify(uri: UriArgument, step: StepOption = None, output: OutputOption = Format.TABLE) -> None:
    """Read the files of all commits and compare their checksums with the log; exit code 5 if one differs.

    With credentials that may write, also check that the store can fence an attempt that was cut off; exit code 5 if it
    cannot.

    \b
    Examples:
      spotladder checkpoints verify s3://bucket/prefix/digits
      spotladder checkpoints verify s3://bucket/prefix/digits --step 1200
    """
    try:
        log = _open(uri)
    except InvalidSpec:
        _check_empty(uri)
        raise
    found: list[tuple[Commit, str]] = []
    for commit in _chosen(log, step):
        try:
            log.verify(commit)
            found.append((commit, ""))
        except CheckpointCorrupt as error:
            found.append((commit, str(error)))
    data = [_commit(commit) | {"ok": not why, "why": why or None} for commit, why in found]
    rows = [[str(c.step), str(c.attempt), _size(c.size), "corrupt" if why else "ok", why] for c, why in found]
    print_result(output, data, ["step", "attempt", "size", "result", "why"], rows, log.uri)
    _check(log.store)
    if any(why for _, why in found):
        raise typer.Exit(CORRUPT)


def _check_empty(uri: str) -> None:
    """Check a bucket in which no job has started. A folder may be missing, and is not created."""
    store = open_store(uri)
    if store.endpoint and _check(store):
        typer.echo(f"{uri}: the store can fence an attempt that was cut off", err=True)


def _check(store: Store) -> bool:
    """Check that the store can fence an attempt; False without the rights to write. Raises StoreUnsafe and
    StoreUnavailable."""
    try:
        check_store(store)
    except StoreUnsafe:
        raise
    except StoreRefused as error:
        typer.echo(f"not checked whether the store can fence an attempt: {error}", err=True)
        return False
    return True


@app.command(short_help="Delete old checkpoints.")
def gc(
    uri: UriArgument,
    keep: Annotated[int, typer.Option(min=1, help="Number of newest commits to keep.")] = 3,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be deleted, but delete nothing.")
    ] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Delete old checkpoints. Until the job has ended, the newest commit of each attempt is also kept.

    The program output of the newest 20 attempts is kept. The command is safe while the job runs.

    \b
    Example:
      spotladder checkpoints gc s3://bucket/prefix/digits --keep 2 --dry-run
    """
    log = _open(uri)
    if dry_run:
        dropped, objects, freed = garbage(log, log.read(), keep), 0, 0
    else:
        collected, printed = log.collect(keep), outputs.of_job(log.store, log.read().owner.uid)
        dropped, objects, freed = collected.dropped, collected.objects + outputs.trim(printed), collected.size
    data = {"dryRun": dry_run, "deleted": [_commit(c) for c in dropped], "objects": objects, "bytes": freed}
    rows = [[str(c.step), str(c.attempt), utc_timestamp(c.at), _size(c.size), c.path] for c in dropped]
    verb = "would delete" if dry_run else "deleted"
    title = f"{log.uri}: {verb} {numbered(len(dropped), 'commit')}"
    if not dry_run:
        title += f", {numbered(objects, 'object')}, {_size(freed)}"
    print_result(output, data, ["step", "attempt", "committed", "size", "path"], rows, title)


def _open(uri: str) -> CommitLog:
    """The log at the address, or the only log one folder below it."""
    store = open_store(uri)
    if any(True for _ in store.list("log/")):
        return CommitLog(store)
    jobs = list(_jobs_below(store))
    if len(jobs) == 1:
        return CommitLog(folder_of(store, jobs[0]))
    base = uri.rstrip("/")
    if jobs:
        raise InvalidSpec(
            f"{uri}: contains the logs of {len(jobs)} jobs: name one: {', '.join(f'{base}/{j}' for j in jobs)}"
        )
    raise InvalidSpec(
        f"{uri}: no commit log found here or one folder below: specify the job's checkpoints.uri, a slash and its name"
    )


def _jobs_below(store: Store) -> Iterator[str]:
    """The names of the folders directly below that contain a log."""
    for name in store.folders():
        with suppress(StoreUnavailable):
            if any(meta.key.endswith(".json") for meta in store.list(f"{name}/log/")):
                yield name


def _chosen(log: CommitLog, step: int | None) -> list[Commit]:
    commits = list(log.commits())
    if step is None:
        return commits
    chosen = [commit for commit in commits if commit.step == step]
    if not chosen:
        known = ", ".join(str(commit.step) for commit in commits) or "none"
        raise InvalidSpec(f"{log.uri}: step {step} has no commit; committed steps: {known}")
    return chosen


def _commit(commit: Commit) -> dict[str, Any]:
    return {
        "step": commit.step,
        "total": commit.total,
        "attempt": commit.attempt,
        "tier": commit.tier,
        "at": utc_timestamp(commit.at),
        "path": commit.path,
        "files": len(commit.files),
        "bytes": commit.size,
        "metrics": dict(commit.metrics),
    }


def _fields(record: Any) -> dict[str, Any]:
    """A record's fields as JSON data."""
    import json
    from dataclasses import asdict

    data: dict[str, Any] = json.loads(json.dumps(asdict(record)))
    return data


def _described(entry: Entry) -> str:
    match entry.kind:
        case "start":
            return f"attempt {entry.attempt} on {entry.tier or '–'}" + (
                f", restart {entry.restart}" * bool(entry.restart)
            )
        case "commit":
            size = f"{numbered(len(entry.files), 'file')}, {_size(entry.size)}"
            return f"step {entry.step} of {entry.total or '?'}, {size}, {entry.path}"
        case "end":
            return ": ".join(part for part in (entry.outcome, entry.message) if part)
        case "drop":
            return f"{numbered(len(entry.paths), 'checkpoint')} removed: {', '.join(entry.paths)}"
        case "snapshot":
            return f"{numbered(len(entry.commits), 'commit')} before this entry"


def _metrics(commit: Commit) -> str:
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in commit.metrics.items()
    )


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
