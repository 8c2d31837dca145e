"""A suite is skipped only if none of its inputs has changed since it passed in full."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("suites", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SUITES = loaded(ROOT / ".ci" / "suites.py")


@pytest.fixture
def checkout(tmp_path: Path) -> ModuleType:
    """The script in a small, separate repository."""
    for name in (".ci/run", "Makefile", "tests/kube/test_one.py", "controller/a.py", "docs/page.md", ".gitignore"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("*.pyc\n" if name == ".gitignore" else name)
    (tmp_path / ".ci" / "suites.py").write_text((ROOT / ".ci" / "suites.py").read_text())
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return loaded(tmp_path / ".ci" / "suites.py")


@pytest.fixture(autouse=True)
def _no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPOTLADDER_CLUSTER_TOOL", raising=False)


def test_a_recorded_suite_is_skipped_with_a_reason(checkout: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert not checkout.passed("kube")
    checkout.record("kube")
    assert checkout.passed("kube")
    assert capsys.readouterr().out.startswith("=== kube skipped: it passed in full on ")
    assert not checkout.passed("e2e")


@pytest.mark.parametrize(
    ("changed", "runs"),
    [
        ("controller/a.py", True),
        ("controller/new.py", True),
        ("tests/kube/test_one.py", True),
        ("Makefile", True),
        (".ci/run", True),
        ("docs/page.md", False),
        ("controller/a.pyc", False),
    ],
)
def test_a_changed_input_makes_the_suite_run(checkout: ModuleType, changed: str, runs: bool) -> None:
    checkout.record("kube")
    (checkout.ROOT / changed).write_text("changed")
    assert checkout.passed("kube") is not runs


def test_a_removed_or_renamed_input_makes_the_suite_run(checkout: ModuleType) -> None:
    checkout.record("kube")
    source = checkout.ROOT / "controller" / "a.py"
    source.rename(source.with_name("b.py"))
    assert not checkout.passed("kube")


def test_a_changed_provider_makes_the_suite_run(
    checkout: ModuleType, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path_factory.mktemp("provider") / "cluster"
    tool.write_text("1")
    monkeypatch.setenv("SPOTLADDER_CLUSTER_TOOL", str(tool))
    checkout.record("kube")
    checkout.record("stores")
    tool.write_text("2")
    assert not checkout.passed("kube")
    assert checkout.passed("stores")


@pytest.mark.parametrize("suite", sorted(SUITES.SUITES))
def test_the_inputs_of_a_suite_include_every_module_that_its_tests_import(suite: str) -> None:
    missing = imported(sorted((ROOT / "tests" / suite).glob("*.py")) or RAY_NAMES) - set(SUITES.inputs(suite))
    assert [str(path.relative_to(ROOT)) for path in sorted(missing)] == []


@pytest.mark.parametrize("suite", sorted(SUITES.SUITES))
def test_the_inputs_of_a_suite_include_every_page_that_its_tests_name(suite: str) -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests" / suite).glob("*.py"))
    pages = {
        page for page in (ROOT / "docs").glob("*.md") if re.search(rf'docs(/|" / "){re.escape(page.name)}"', tests)
    }
    assert pages <= set(SUITES.inputs(suite))


def test_no_other_module_may_import_what_is_an_input_of_no_suite() -> None:
    forecasts = {module_name(path) for path in SUITES.FORECASTS}
    commands = {name for name in forecasts if name.startswith("spotladder.cli.")}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    closed = [
        set(each["protected_modules"]) for each in contracts if set(each.get("allowed_importers", ())) == commands
    ]
    assert closed == [commands]
    assert forecasts - commands in [set(each.get("forbidden_modules", ())) for each in contracts]


@pytest.mark.parametrize("path", SUITES.FORECASTS)
def test_a_path_that_is_no_input_exists(path: str) -> None:
    assert (ROOT / path).exists()


RAY_NAMES = [ROOT / "tests" / "train" / "test_rayinternals.py", ROOT / "tests" / "local" / "test_raystart.py"]
"""The tests of the suite `ray`, which has no folder of its own."""

SOURCES = {"tests": ROOT, "spotladder": ROOT / "controller", "spotladder_infra": ROOT / "infra"}
"""The folder that holds each of the project's packages."""


def imported(files: list[Path]) -> set[Path]:
    """These files and the project's modules that they import, directly or indirectly, including inside functions."""
    found, queue = set(files), list(files)
    while queue:
        for node in ast.walk(ast.parse(queue.pop().read_text())):
            if isinstance(node, ast.ImportFrom):
                names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for path in filter(None, map(module_file, names)):
                if path not in found:
                    found.add(path)
                    queue.append(path)
    return found


def module_name(path: str) -> str:
    return path.removeprefix("controller/").removesuffix(".py").replace("/", ".")


def module_file(name: str) -> Path | None:
    """The file of one of the project's modules; None for third-party packages and names inside a module."""
    folder = SOURCES.get(name.partition(".")[0])
    if folder is None:
        return None
    path = folder / name.replace(".", "/")
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()), None)
