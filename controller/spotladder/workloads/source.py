"""`spec.source` in the pods: an init container with the program's own image unpacks the archive and installs packages
into a volume, in which the program starts."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

from spotladder.api.source import Source

MOUNT = "/spotladder"
_VOLUME = CONTAINER = "spotladder-source"
_RESOURCES = ("cpu", "memory", "ephemeral-storage")

_START = """\
import importlib.util, os, pathlib, subprocess, sys, sysconfig, venv
folder, library, *words = sys.argv[1:]
place = f"{folder}/venv"
venv.create(place, system_site_packages=True, symlinks=True)
python = f"{place}/bin/python3"
query = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
packages = pathlib.Path(subprocess.check_output(query, text=True).strip())
outer = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
(packages / "outer.pth").write_text("".join(f"import site; site.addsitedir({path!r})\\n" for path in sorted(outer)))
os.symlink(packages, f"{folder}/packages")
if importlib.util.find_spec("spotladder") is None:
    print(f"installing {library}", flush=True)
    subprocess.run([python, "-m", "pip", "install", "--no-cache-dir", library], check=True)
os.execv(python, [python, "-m", "spotladder.train.source", folder, *words])
"""
"""The program of the init container. A virtual environment on top of the image's Python has what the image lacks."""


@cache
def _library() -> str:
    return f"spotladder=={version('spotladder')}"


def add_source(spec: dict[str, Any], program: dict[str, Any], source: Source) -> None:
    """Add the init container and the volume to a pod spec, and let the program container start among the files. Call it
    when the program container is complete: the init container gets its image, environment and security settings."""
    mount = {"name": _VOLUME, "mountPath": MOUNT}
    program["volumeMounts"] = [*(program.get("volumeMounts") or ()), mount]
    program.setdefault("workingDir", f"{MOUNT}/source")
    own = [entry for entry in program.get("env") or () if entry.get("name") != "PYTHONPATH"]
    given = [entry.get("value") for entry in program.get("env") or () if entry.get("name") == "PYTHONPATH"]
    path = [f"{MOUNT}/source", f"{MOUNT}/packages", *filter(None, given)]
    asked: dict[str, dict[str, Any]] = {**(program.get("resources") or {}), "claims": {}}
    resources = {
        kind: {name: amount for name, amount in amounts.items() if name in _RESOURCES}
        for kind, amounts in asked.items()
        if amounts
    }
    words = [MOUNT, _library(), source.uri, *filter(None, [source.pip])]
    unpacks: dict[str, Any] = {
        "name": CONTAINER,
        "command": ["python3", "-c", _START, *words],
        "env": [*own, {"name": "TMPDIR", "value": MOUNT}],
        "volumeMounts": [mount],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **({"resources": resources} if any(resources.values()) else {}),
        **{key: program[key] for key in ("image", "imagePullPolicy", "envFrom", "securityContext") if key in program},
    }
    program["env"] = [*own, {"name": "PYTHONPATH", "value": ":".join(path)}]
    spec["initContainers"] = [unpacks, *(spec.get("initContainers") or ())]
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": _VOLUME, "emptyDir": {}}]
