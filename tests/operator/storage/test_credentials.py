"""The credentials of the controller's own identity, on an S3 server that checks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.checkpoints.store import RightsRefused
from spotladder.operator.storage.bucket_log import BucketLog
from spotladder.operator.storage.commit_logs import LogAddress
from tests.checkpoints.servers import checked_keys, moto, new_bucket, use_profile, write_profile


def test_replaced_keys_of_a_credentials_file_are_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    with moto(monkeypatch) as server:
        uri = new_bucket(server).replace(" ", "-")  # moto cannot check a signature over a space
        with checked_keys(server) as keys:
            old, new = keys.take(), keys.take()
            use_profile(monkeypatch, server, file, *old)
            log = BucketLog(LogAddress("digits", "team-a", "uid", uri))
            assert log.progress().step == 0
            keys.revoke(*old)
            for content in ("[team]\n", None):  # while it is replaced the file is incomplete
                if content:
                    file.write_text(content)
                else:
                    write_profile(file, *new)
                with pytest.raises(RightsRefused):
                    log.progress()
            assert log.progress().step == 0
