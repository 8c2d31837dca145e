"""Finds Terraform or OpenTofu."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spotladder.errors import EnvironmentFailure

VARIABLE = "SPOTLADDER_TERRAFORM"
"""The environment variable that names the program."""

PROGRAMS = ("terraform", "tofu")
OLDEST = (1, 11)

_FIRST_LINE = re.compile(r"^(Terraform|OpenTofu) v(\d+)\.(\d+)\.(\d+)")
_INSTALL = f"install Terraform or OpenTofu {OLDEST[0]}.{OLDEST[1]} or newer, or set {VARIABLE} to its path"


@dataclass(frozen=True, slots=True)
class Tool:
    """The program to run. `product` is Terraform or OpenTofu."""

    path: str
    product: str
    version: str


def find(environment: Mapping[str, str] = os.environ) -> Tool:
    """The program that $SPOTLADDER_TERRAFORM names, else terraform, else tofu on the PATH.

    Raises:
        EnvironmentFailure: No program is found, it does not run, or it is too old.
    """
    named = environment.get(VARIABLE)
    search = environment.get("PATH")
    candidates = [named] if named else list(PROGRAMS)
    path = next((found for name in candidates if (found := shutil.which(name, path=search))), None)
    if path is None:
        where = f"{VARIABLE}={named}: no such program" if named else "neither terraform nor tofu is on the PATH"
        raise EnvironmentFailure(f"{where}: {_INSTALL}")
    try:
        done = subprocess.run(
            [path, "version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**environment, "CHECKPOINT_DISABLE": "1"},
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"{path} does not run ({error}): {_INSTALL}") from None
    match = _FIRST_LINE.match(done.stdout)
    if match is None:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["nothing"]
        raise EnvironmentFailure(
            f"{path}: expected the version of Terraform or OpenTofu, got {lines[0][:200]!r}: {_INSTALL}"
        )
    version = ".".join(match.groups()[1:])
    if (int(match[2]), int(match[3])) < OLDEST:
        raise EnvironmentFailure(f"{path} is {match[1]} {version}: {_INSTALL}")
    return Tool(path, match[1], version)


def environment_of_runs(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of every run: no prompts, no update checks, and one cache of providers for all stacks, unless
    $TF_PLUGIN_CACHE_DIR names another."""
    found = {**environment, "TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}
    if "TF_PLUGIN_CACHE_DIR" not in found:
        base = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        cache = base / "spotladder" / "terraform-plugins"
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError:
            return found  # without the cache the command is only slower
        found["TF_PLUGIN_CACHE_DIR"] = str(cache)
    return found
