"""Ray's storage in a bucket, through Ray's own API, on moto's S3 server."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from spotladder.errors import InvalidSpec
from spotladder.train import rayfiles
from spotladder.train.environment import Environment
from spotladder.train.raytrain import ray_run_config, storage_of
from tests.checkpoints.servers import OutageProxy, moto, new_bucket

AWAY = 0.7
"""Seconds of an outage, in which a request times out."""


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as environment, moto(environment) as endpoint:
        yield new_bucket(endpoint).replace(" ", "-")


def test_ray_stores_its_files_beside_the_log(bucket: str, tmp_path: Path) -> None:
    from ray.train import Checkpoint
    from ray.train.v2._internal.execution.storage import StorageContext

    here = Environment({"SPOTLADDER_URI": bucket, "SPOTLADDER_JOB": "digits"})
    path, filesystem = storage_of(here, "attempts/0001")
    assert path == f"{bucket.removeprefix('s3://')}/digits/attempts/0001"
    unpickled = pickle.loads(pickle.dumps(filesystem))  # noqa: S301 – pickled here
    assert unpickled == filesystem
    storage = StorageContext(path, "ray-1", filesystem)
    with filesystem.open_output_stream(f"{storage.experiment_fs_path}/snapshot.json") as file:
        file.write(b"{}")
    with unpickled.open_input_file(f"{storage.experiment_fs_path}/snapshot.json") as file:
        assert file.readall() == b"{}"
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "state").write_text("x")
    kept = storage.persist_current_checkpoint(Checkpoint.from_directory(str(tmp_path)), "ckpt")
    with Checkpoint(kept.path, filesystem=unpickled).as_directory() as folder:
        assert Path(folder, "sub", "state").read_text() == "x"


@pytest.mark.parametrize("as_address", [False, True])
def test_a_folder_whose_address_is_quoted_is_the_same_folder_for_ray(tmp_path: Path, as_address: bool) -> None:
    folder = tmp_path / "my checkpoints é"
    uri = folder.as_uri() if as_address else str(folder)
    path, filesystem = storage_of(Environment({"SPOTLADDER_URI": uri, "SPOTLADDER_JOB": "digits"}), "attempts/0001")
    assert (path, filesystem) == (f"{folder}/digits/attempts/0001", None)


@pytest.mark.parametrize("kind", ["refused", "503", "hanging"])
def test_rays_uploads_wait_for_the_end_of_an_outage(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from ray.train import Checkpoint
    from ray.train.v2._internal.execution.storage import StorageContext

    away = OutageProxy(os.environ["AWS_ENDPOINT_URL"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", away.endpoint)
    rayfiles._Bucket.clear_instance_cache()  # Otherwise the server itself would get the requests.
    monkeypatch.setattr(rayfiles, "FIRST_RETRY_INTERVAL", timedelta(seconds=0.01))
    monkeypatch.setattr(rayfiles, "LONGEST_RETRY_INTERVAL", timedelta(seconds=0.05))
    monkeypatch.setattr(rayfiles, "REQUEST_TIMEOUT", timedelta(seconds=0.5))
    path, filesystem = storage_of(Environment({"SPOTLADDER_URI": bucket, "SPOTLADDER_JOB": kind}), "attempts/0001")
    storage = StorageContext(path, "tune-1", filesystem)
    (tmp_path / "state").write_bytes(b"x" * (11 << 20))  # two parts
    away.begin(kind)
    back = threading.Timer(AWAY, away.end)
    back.start()
    began = time.monotonic()
    kept = storage.persist_current_checkpoint(Checkpoint.from_directory(str(tmp_path)), "ckpt")
    assert time.monotonic() - began >= AWAY
    with Checkpoint(kept.path, filesystem=filesystem).as_directory() as folder:
        assert Path(folder, "state").stat().st_size == 11 << 20
    away.close()


@pytest.mark.parametrize("field", ["name", "storage_path", "storage_filesystem", "failure_config"])
def test_fields_that_the_attempt_sets_are_rejected(field: str) -> None:
    with pytest.raises(InvalidSpec, match=field):
        ray_run_config(**cast("Any", {field: "mine"}))


def test_a_run_does_not_wait_for_rays_placement_group_cleaner() -> None:
    from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback
    from ray.train.v2.api import data_parallel_trainer

    from spotladder.train.rayinternals import ControllerCallback

    ray_run_config()
    replacement = data_parallel_trainer.PlacementGroupCleanerCallback
    assert issubclass(replacement, ControllerCallback)
    own = {name for name in vars(PlacementGroupCleanerCallback) if name.startswith(("before_", "after_"))}
    assert own, "Ray's cleaner reacts to events of the controller"
    assert not own & vars(replacement).keys()
