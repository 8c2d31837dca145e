"""The environment variables of a job, their defaults, and errors for invalid values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from spotladder.train.environment import Environment, Interval


def of(**variables: str) -> Environment:
    return Environment({f"SPOTLADDER_{name}": value for name, value in variables.items()})


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("", Interval(seconds=300)),
        ("50steps", Interval(steps=50)),
        ("1 step", Interval(steps=1)),
        ("30s", Interval(seconds=30)),
        ("1h30m", Interval(seconds=5400)),
    ],
)
def test_intervals(text: str, interval: Interval) -> None:
    assert of(INTERVAL=text).interval == interval


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("INTERVAL", "often", "interval"),
        ("INTERVAL", "0steps", "interval"),
        ("INTERVAL", "-3s", "interval"),
        ("INTERVAL", "0s", "interval"),
        ("ATTEMPT", "0", "attempt"),
        ("ATTEMPT", "two", "attempt"),
        ("ATTEMPT", "²", "attempt"),
        ("KEEP", "-1", "keep"),
        ("GRACE", "soon", "grace"),
        ("CACHE_SIZE", "20Gi", "cache_size"),
        ("CACHE_SIZE", "0", "cache_size"),
        ("SIZES", "2,,3", "sizes"),
        ("SIZES", "0,1", "sizes"),
        ("SIZES", "two", "sizes"),
        ("GROW_AFTER", "10", "grow_after"),
    ],
)
def test_the_error_names_the_invalid_variable(name: str, text: str, read: str) -> None:
    with pytest.raises(InvalidSpec) as error:
        getattr(of(**{name: text}), read)
    assert str(error.value).startswith(f"SPOTLADDER_{name}: ")


def test_scripts_with_the_same_name_share_checkpoints_only_with_a_job_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def uri(script: str, **variables: str) -> str:
        monkeypatch.setattr("sys.argv", [script])
        return Environment({"SPOTLADDER_STATE": str(tmp_path), **variables}).uri

    monkeypatch.chdir(tmp_path)
    assert uri("a/train.py") == uri(f"{tmp_path}/a/train.py") != uri("b/train.py")
    named = {"SPOTLADDER_JOB": "digits"}
    assert uri("a/train.py", **named) == uri("b/train.py", **named) == f"{tmp_path}/default/checkpoints"


def test_notebooks_share_no_checkpoints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.argv", ["/venv/lib/ipykernel_launcher.py"])
    seen = set()
    for notebook in ("/notebooks/a/one.ipynb", "/notebooks/a/two.ipynb", "/notebooks/b/one.ipynb", ""):
        monkeypatch.setenv("JPY_SESSION_NAME", notebook)
        monkeypatch.chdir(tmp_path)
        seen.add((Environment({}).uri, Environment({}).job))
    assert len(seen) == 4
    assert {job for _, job in seen} == {"one", "two", "notebook"}


def test_scripts_of_one_folder_share_no_checkpoints_in_any_script(monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    for script in ("训练.py", "评估.py", "训练2.py", "评估2.py", "modèle.py", "modéle.py", "script.py"):
        monkeypatch.setattr("sys.argv", [script])
        names.append(Environment({}).job)
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)


def test_defaults_outside_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/somewhere/My Script.py"])
    here = Environment({"XDG_STATE_HOME": "/home/me/state"})
    assert (here.job, here.namespace, here.attempt, here.tier, here.keep, here.grace) == (
        "my-script",
        "default",
        1,
        "local",
        3,
        90.0,
    )
    assert re.fullmatch(r"/home/me/state/spotladder/default/checkpoints/somewhere-[0-9a-f]{8}", here.uri)
    assert (here.notice_file, here.heartbeat_file) == (None, None)
    assert (here.cache_folder, here.cache_size) == (None, None)


def test_exported_variables_recreate_the_environment() -> None:
    exported = of(JOB="digits", URI="s3://bucket/a", ATTEMPT="3", TIER="spot", INTERVAL="20steps", NOTICE="/run/notice")
    recreated = Environment(exported.exported())
    assert Environment(of(COMPILED="/var/compiled").exported()).compiled_folder is None, "another machine has its own"
    for name in ("job", "namespace", "attempt", "tier", "uri", "interval", "notice_file", "keep"):
        assert getattr(recreated, name) == getattr(exported, name)
