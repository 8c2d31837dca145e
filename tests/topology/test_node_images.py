"""`upgrade --images`: the images in the fleet file, in the cluster and in AWS's list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from spotladder.cli.main import main
from spotladder.errors import EnvironmentFailure
from spotladder_infra.facts.images import NODE_IMAGE
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.node_images import newest
from spotladder_infra.rollout.images import PoolImage, pool_images
from spotladder_infra.rollout.tools import Object, Tools
from tests.topology.builders import fleet_file

AL2023 = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/release_version"
BOTTLEROCKET = "/aws/service/bottlerocket/aws-k8s-1.35/x86_64/latest/image_version"


def ssm(*answers: tuple[str, str | None]) -> tuple[Any, Stubber]:
    """A client for Systems Manager that expects these parameters, in order; None is a refusal."""
    client = boto3.client("ssm", "us-east-1", aws_access_key_id="test", aws_secret_access_key="test")  # noqa: S106
    stub = Stubber(client)
    for name, value in answers:
        if value is None:
            stub.add_client_error("get_parameter", "AccessDeniedException", "not allowed", 400)
        else:
            stub.add_response("get_parameter", {"Parameter": {"Name": name, "Value": value}}, {"Name": name})
    stub.activate()
    return client, stub


@pytest.mark.parametrize(
    ("family", "answers", "expected"),
    [
        ("al2023", [(AL2023, "1.35.7-20261117")], "al2023@v20261117"),
        ("bottlerocket", [(BOTTLEROCKET, "1.52.1-0a1b2c3d")], "bottlerocket@v1.52.1"),
        ("custom", [], None),
    ],
)
def test_the_newest_image_of_a_family(family: str, answers: list[tuple[str, str]], expected: str | None) -> None:
    client, stub = ssm(*answers)
    assert newest(client, family, "1.35") == expected
    stub.assert_no_pending_responses()


class Karpenter(Tools):
    """A cluster with node classes and NodeClaims."""

    def __init__(self, classes: dict[str, str], claims: list[tuple[str, str]]) -> None:
        super().__init__(KubeContext("/nowhere", "east"))
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "claims", claims)

    classes: dict[str, str]
    claims: list[tuple[str, str]]

    def items(self, *arguments: str) -> list[Object]:
        if arguments[0] == "nodeclaims.karpenter.sh":
            return [
                {
                    "metadata": {"labels": {"karpenter.sh/nodepool": pool}},
                    "status": {"conditions": [{"type": "Drifted", "status": drifted}]},
                }
                for pool, drifted in self.claims
            ]
        field = {
            "ec2nodeclasses.karpenter.k8s.aws": "amiSelectorTerms",
            "gcenodeclasses.karpenter.k8s.gcp": "imageSelectorTerms",
        }[arguments[0]]
        return [
            {"metadata": {"name": name}, "spec": {field: [{"alias": image}]}} for name, image in self.classes.items()
        ]


def images(tmp_path: Path, cluster: str, tools: Tools, connect: Any, *changes: tuple[str, str]) -> dict[str, PoolImage]:
    found = pool_images(tools, fleet_file(tmp_path, *changes).fleet.cluster(cluster), connect)
    return {image.pool: image for image in found}


OLD = "al2023@v20260801"
PINNED = ("{name: g5-on-demand,", f"{{name: g5-on-demand, image: {OLD},")


@pytest.mark.parametrize(
    ("installed", "claims", "published", "advice"),
    [
        (OLD, [], None, "–"),
        (OLD, [], "1.35.7-20260801", "–"),
        (OLD, [], "1.35.7-20260701", "–"),
        (OLD, [], "1.35.7-20261117", "set image: al2023@v20261117 on pool g5-on-demand in the fleet file"),
        ("al2023@v20260701", [], None, "spotladder infra upgrade --apply"),
        (OLD, ["True", "False"], None, "wait: 1 nodes with another image are replaced when they are empty"),
    ],
)
def test_what_to_do_about_the_image_of_a_pool(
    installed: str, claims: list[str], published: str | None, advice: str, tmp_path: Path
) -> None:
    tools = Karpenter({"g5-on-demand": installed}, [("g5-on-demand", drifted) for drifted in claims])
    connect = None
    if published is not None:
        client, _ = ssm(*[(AL2023, published)] * 4)
        connect = lambda *_: client  # noqa: E731
    found = images(tmp_path, "east", tools, connect, PINNED)["g5-on-demand"]
    assert (found.pinned, found.installed, found.advice) == (OLD, installed, advice)
    assert (found.nodes, found.old_nodes) == (len(claims), claims.count("True"))


def test_pools_without_an_image_have_the_one_of_the_release(tmp_path: Path) -> None:
    found = images(tmp_path, "east", Karpenter({}, []), None)
    assert {image.pinned for image in found.values()} == {NODE_IMAGE}
    assert {image.installed for image in found.values()} == {"–"}


def test_google_names_no_newest_image(tmp_path: Path) -> None:
    tools = Karpenter({"n2-spot": "ContainerOptimizedOS@latest"}, [])
    found = images(tmp_path, "alpha", tools, lambda *_: pytest.fail("AWS is asked"))["n2-spot"]
    assert (found.installed, found.newest, found.advice) == ("ContainerOptimizedOS@latest", "–", "–")


@pytest.mark.parametrize("cluster", ["west", "lab", "laptop"])
def test_other_nodes_have_no_image_of_ours(cluster: str, tmp_path: Path) -> None:
    assert images(tmp_path, cluster, Tools(KubeContext("/nowhere", cluster)), None) == {}


def test_an_error_of_aws_is_reported(tmp_path: Path) -> None:
    client, _ = ssm((AL2023, None))
    with pytest.raises(EnvironmentFailure, match=r"allow ssm:GetParameter .* or leave out --online"):
        images(tmp_path, "east", Karpenter({}, []), lambda *_: client)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--images", "--apply"], "--images changes nothing"),
        (["--online"], "specify --images, too"),
    ],
)
def test_options_that_do_not_belong_together(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["infra", "upgrade", *options]) == 2
    assert message in capsys.readouterr().err
