"""The credentials of the controller's own identity, on an S3 server that checks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.checkpoints.store import RightsRefused
from spotladder.operator.storage.egress import Egress
from spotladder.operator.storage.logs import BucketLog, LogAddress
from tests.checkpoints.servers import checked_keys, moto, new_bucket, use_s3


def test_replaced_keys_of_a_credentials_file_are_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "credentials"

    def write(key: str, secret: str) -> None:
        file.write_text(f"[team]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")

    with moto(monkeypatch) as server:
        uri = new_bucket(server).replace(" ", "-")  # moto cannot check a signature over a space
        with checked_keys(server) as keys:
            old, new = keys.take(), keys.take()
            write(*old)
            use_s3(monkeypatch, server, *old)
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                monkeypatch.delenv(name)
            monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
            monkeypatch.setenv("AWS_PROFILE", "team")
            log = BucketLog(LogAddress("digits", "team-a", "uid", uri), Egress())
            assert log.progress().step == 0
            keys.revoke(*old)
            for content in ("[team]\n", None):  # while it is replaced the file is incomplete
                if content:
                    file.write_text(content)
                else:
                    write(*new)
                with pytest.raises(RightsRefused):
                    log.progress()
            assert log.progress().step == 0
