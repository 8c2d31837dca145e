"""The documentation: links resolve, files are valid, code and commands run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from spotladder.api.read import read_documents, read_job, read_world
from spotladder_infra.topology.read import read_fleet
from tests.cli.terminal import call
from tests.docs.follow import lay_out, typed
from tests.docs.markdown import ROOT, Block, blocks, commands, pages

LANGUAGES = {"sh", "yaml", "python", "lua", "text", "json"}
FRAMEWORKS = re.compile(r"^\s*(?:import|from) (?:tensorflow|torch|jax|ray|keras|mlflow|wandb)\b", re.MULTILINE)
OF_A_PACKAGE = re.compile(r"^from your_package\b", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
ANCHOR = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)#([^)\s]+)\)")
MENTION = re.compile(r"(?<![\w/])docs/([\w-]+\.md)(#[\w-]+)?")
MENTIONING = {".py", ".md", ".yaml", ".tpl", ".txt", ".toml", "Dockerfile", "Makefile", "up"}
"""Suffixes and names of files that may name a page of docs, such as in a message or a comment."""
TARGET = re.compile(r"^([a-z0-9-]+):", re.MULTILINE)


def ids(value: object) -> str:
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else str(value)


@pytest.mark.parametrize("page", pages(), ids=ids)
def test_links_lead_to_files_of_the_project(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not missing


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub derives them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", pages(), ids=ids)
def test_links_lead_to_headings_that_exist(page: Path) -> None:
    for target, anchor in ANCHOR.findall(page.read_text()):
        linked = (page.parent / target).resolve() if target else page
        assert linked.suffix != ".md" or anchor in anchors(linked), f"{target}#{anchor}"


def mentions() -> list[tuple[str, str, str]]:
    """The pages of docs that files of the project name outside of Markdown links: file, page, anchor."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = []
    for name in tracked.split("\0"):
        if Path(name).suffix in MENTIONING or Path(name).name in MENTIONING:
            text = (ROOT / name).read_text(encoding="utf-8") if (ROOT / name).is_file() else ""
            found += [(name, f"docs/{page}", anchor) for page, anchor in MENTION.findall(text)]
    return found


def test_pages_that_code_and_messages_name_exist_with_their_anchors() -> None:
    found = mentions()
    assert len(found) > 30
    missing = [
        one
        for one in found
        if not (ROOT / one[1]).exists() or (one[2] and one[2].lstrip("#") not in anchors(ROOT / one[1]))
    ]
    assert missing == []


def test_every_page_is_in_the_index_and_the_readme_links_to_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / link).resolve() for link in LINK.findall(index.read_text())}
    assert {page.resolve() for page in (ROOT / "docs").glob("**/*.md")} - {index.resolve()} <= listed
    assert "docs/README.md" in LINK.findall((ROOT / "README.md").read_text())


def test_no_command_changes_the_home_folder() -> None:
    """Without it, kubectl finds no context."""
    lines = [line for block in blocks("text", "sh") for line in block.text.splitlines()]
    assert [line for line in lines if re.match(r"\s*(?:export )?HOME=", line)] == []


def test_every_block_has_a_language() -> None:
    assert not [str(block) for block in blocks() if block.language not in LANGUAGES]


@pytest.mark.parametrize("block", list(blocks("yaml")), ids=ids)
def test_yaml_is_valid(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "shown.yaml"
    file.write_text(block.text)
    if "kind: TieredJob" in block.text:
        read_job(file)
    elif "kind: Fleet" in block.text:
        read_fleet(file, date(2026, 11, 22))
    elif block.text.lstrip().startswith("pools:"):
        for trace in (other for other in blocks("json") if other.page == block.page and "gap_seconds" in other.text):
            (tmp_path / "trace.json").write_text(trace.text)
        read_world(file)
    else:
        assert list(read_documents(file)), "neither a TieredJob nor a world file"


@pytest.mark.parametrize("block", list(blocks("python")), ids=ids)
def test_python_runs(block: Block, tmp_path: Path) -> None:
    compile(block.text, str(block), "exec")
    if FRAMEWORKS.search(block.text):
        return  # shown in parts; the tests of the examples run it
    if OF_A_PACKAGE.search(block.text):
        return  # test_own_policy runs it
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPOTLADDER_")}
    environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    run = subprocess.run(
        [sys.executable, "-c", block.text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_make_targets_exist_and_the_checks_run_those_of_the_readme() -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    named = {
        word for page in pages() for word in re.findall(r"(?:`|^ *)make ([a-z][a-z0-9-]+)", page.read_text(), re.M)
    }
    assert named <= targets
    checks = (ROOT / ".ci/run").read_text()
    assert "make demo" in checks
    assert "make test" in checks


ELSEWHERE = ("make", "helm", "kubectl", "docker")
"""Commands that other tests run, or that need a cluster or a registry."""

OF_A_FLEET = {"rollout", "status", "drift", "rollback", "upgrade"}
"""Commands of `spotladder infra` that need the clusters of a fleet: tests/infra runs them."""


QUICKSTART = ROOT / "docs" / "quickstart.md"
"""The one page with commands that start Ray: test_quickstart runs them."""


def pages_with_commands() -> list[Path]:
    """Pages whose commands run here. The tests of the examples run the commands of the examples."""
    return [
        page
        for page in pages()
        if page.is_relative_to(ROOT / "docs")
        and page != QUICKSTART
        and any(line.startswith(".venv/") for line in commands(page))
    ]


def test_only_the_quickstart_starts_ray() -> None:
    assert [
        page for page in pages_with_commands() if any("spotladder run " in command for command in commands(page))
    ] == []
    assert any("spotladder run " in command for command in commands(QUICKSTART))


@pytest.mark.parametrize("page", pages(), ids=ids)
def test_commands_name_files_that_exist(page: Path) -> None:
    for command in commands(page):
        words = shlex.split(command)
        folder = ROOT
        if words[0] == "cd":
            folder, words = ROOT / words[1], words[3:]
        elsewhere = words[0] in ELSEWHERE or (words[:2] == ["spotladder", "infra"] and words[2] in OF_A_FLEET)
        assert elsewhere or words[0].startswith((".venv/bin/", "../../.venv/bin/")), command
        named = [word for word in words if word.startswith(("examples/", "charts/")) or word.endswith(".py")]
        missing = [word for word in named if "/checkpoints" not in word and not (folder / word).exists()]
        assert not missing, command


FEW_RUNS = {"plan": ("--runs", "2"), "sim": ("--seeds", "1")}
"""Options that are added to commands with simulated runs."""


@pytest.mark.parametrize("page", pages_with_commands(), ids=ids)
def test_commands_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, which is quicker; tests/cli/test_main.py starts the program itself."""
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for program, *words in typed(page):
        assert program == ".venv/bin/spotladder"
        answer = call(capsys, *words, *FEW_RUNS.get(words[0], ()))
        assert answer.code == 0, f"{words}\n{answer.err}"
