"""Submitting jobs and their capacity, on a real API server."""

from __future__ import annotations

import json
from pathlib import Path

from ruamel.yaml import YAML

from tests.cli.terminal import Answer
from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli
from tests.kube.job_files import job_file, written
from tests.kube.world import world


async def test_a_job_is_submitted_shown_and_deleted(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as kube:
        file = job_file(tmp_path, kube)
        answer = await cli("submit", file, "-n", kube.namespace)
        assert answer == Answer(0, "tieredjob.spotladder.io/digits created\n", "")

        again = await cli("submit", file, "-n", kube.namespace)
        assert (again.code, again.out) == (2, "")
        assert (
            f"error: tieredjob digits already exists in namespace {kube.namespace}: use --update to change it"
            in again.err
        )
        assert (await cli("submit", file, "--update", "-n", kube.namespace)).out.endswith("unchanged\n")

        table = (await cli("get", "-n", kube.namespace)).out.splitlines()
        assert table[0].split()[:2] == ["NAME", "PHASE"]
        assert [line.split()[0] for line in table[1:]] == ["digits"]
        assert kube.namespace in (await cli("get", "-A")).out
        one = json.loads((await cli("get", "digits", "-n", kube.namespace, "-o", "json")).out)
        assert (one["kind"], one["metadata"]["name"]) == ("TieredJob", "digits")
        assert "managedFields" not in one["metadata"]
        several = json.loads((await cli("get", "-n", kube.namespace, "-o", "json")).out)
        assert [(item["kind"], item["metadata"]["name"]) for item in several["items"]] == [("TieredJob", "digits")]

        answer = await cli("delete", "digits", "-n", kube.namespace)
        assert answer == Answer(0, "tieredjob.spotladder.io/digits deleted\n", "")
        empty = await cli("get", "-n", kube.namespace)
        assert empty == Answer(0, "", f"No TieredJobs found in namespace {kube.namespace}.\n")


async def test_an_update_removes_fields_that_the_file_no_longer_has(
    api_server: ApiServer, cli: Cli, tmp_path: Path
) -> None:
    async with world(api_server) as kube:
        file = job_file(tmp_path, kube)
        job = YAML(typ="safe").load(file)
        second = {"name": "spot-b", "capacityTier": f"{kube.namespace}-spot-b"}
        more = {"budget": "20", "grace": "3m", "tiers": [*job["spec"]["tiers"], second]}
        full = {**job, "spec": {**job["spec"], **more}}
        assert (await cli("submit", written(tmp_path / "full.yaml", full), "-n", kube.namespace)).code == 0
        assert (await cli("suspend", "digits", "-n", kube.namespace)).code == 0
        answer = await cli("submit", file, "--update", "-n", kube.namespace)
        assert answer.code == 0
        assert answer.out.splitlines()[0] == "tieredjob.spotladder.io/digits configured"
        assert "  -  budget: '20'" in answer.out.splitlines()
        spec = (await kube.job())["spec"]
        assert "budget" not in spec
        assert spec["grace"] == "1m30s"
        assert [tier["name"] for tier in spec["tiers"]] == ["spot-a"]
        assert spec["suspend"] is True
        managers = [(entry["manager"], entry["operation"]) for entry in (await kube.job())["metadata"]["managedFields"]]
        assert sorted(managers) == [("spotladder-cli", "Apply"), ("spotladder-cli", "Update")]
        again = await cli("submit", file, "--update", "-n", kube.namespace)
        assert again.out == "tieredjob.spotladder.io/digits unchanged\n"
