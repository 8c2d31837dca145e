"""The images of the tests on real nodes: one that a cluster uses stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.provider import remove_image


def test_an_image_is_removed_with_its_unpacked_files_unless_a_cluster_uses_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPOTLADDER_CLUSTERS", str(tmp_path / "clusters"))
    tars = [tmp_path / "used.tar", tmp_path / "old.tar"]
    for tar in tars:
        tar.write_text("image")
        (tmp_path / "stores" / tar.stem).mkdir(parents=True)
        (tmp_path / "stores" / f"{tar.stem}.json").write_text(json.dumps([str(tar)]))
    (tmp_path / "clusters" / "east").mkdir(parents=True)
    (tmp_path / "clusters" / "east" / "cluster.json").write_text(json.dumps({"images": [str(tars[0])]}))
    for tar in tars:
        remove_image(tar)
    assert [tar.exists() for tar in tars] == [True, False]
    assert sorted(path.name for path in (tmp_path / "stores").iterdir()) == ["used", "used.json"]
