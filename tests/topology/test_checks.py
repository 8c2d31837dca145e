"""Rules of a fleet file that need more than one change; test_fleet_problems.py has those of one field."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from spotladder_infra.facts import images, instances
from tests.topology.builders import PLATFORM, fleet_file, many_teams


def test_a_role_fits_the_teams_of_a_large_company(tmp_path: Path) -> None:
    assert fleet_file(tmp_path, many_teams(50)).warnings == ()


@pytest.mark.parametrize(("teams", "refused"), [(19, False), (20, True)])
def test_google_cloud_limits_the_controllers_conditions(teams: int, refused: bool, tmp_path: Path) -> None:
    changes = (("home: east", "home: west"), many_teams(teams))
    if not refused:
        fleet_file(tmp_path, *changes)
        return
    with pytest.raises(InvalidSpec, match=r"spec\.buckets\[1\]: is used by 21 teams \(expected at most 20"):
        fleet_file(tmp_path, *changes)


def test_the_controller_has_no_identity_in_another_account(tmp_path: Path) -> None:
    second = (
        "  - name: west\n    cloud: gcp\n",
        (
            "  - name: far\n    cloud: aws\n    region: us-west-2\n    account: '210987654321'\n    bucket: acme-far\n"
            "    network: {cidr: 10.8.0.0/16}\n    pools:\n    - {name: far-heads, role: heads, families: [m7i]}\n"
            "  - name: west\n    cloud: gcp\n"
        ),
    )
    bucket = ("  - {name: acme-central", "  - {name: acme-far, cloud: aws, region: us-west-2}\n  - {name: acme-central")
    found = [str(problem) for problem in fleet_file(tmp_path, (PLATFORM, ""), second, bucket).warnings]
    assert any("spec.buckets[1]: is in account 210987654321, where the controller in east" in text for text in found)


def test_a_right_fleet_has_neither(tmp_path: Path) -> None:
    assert fleet_file(tmp_path).warnings == ()


def test_every_instance_type_of_the_table_has_its_family_and_accelerators() -> None:
    for cloud, families in instances.FAMILIES.items():
        for family in families:
            for name in instances.types_of(cloud, family):
                assert instances.family_of(cloud, name) == family
                assert instances.number_of_accelerators(cloud, name)


def test_spot_without_fallback(tmp_path: Path) -> None:
    only_spot = (("{name: g5-on-demand,", "{name: g5-on-demand, capacityType: spot,"),
                 ("capacityType: reserved\n", "capacityType: spot\n"),
                 ("      reservation: {capacityBlocks: [cr-0123456789abcdef0]}\n", ""),
                 ("{name: l4-on-demand,", "{name: l4-on-demand, capacityType: spot, price: {perNodeHour: 1},"),
                 ("{name: lab-gpu,", "{name: lab-gpu, capacityType: spot,"))  # fmt: skip
    found = [str(problem) for problem in fleet_file(tmp_path, *only_spot).warnings]
    assert [text for text in found if "has only spot capacity for workers" in text], found


@pytest.mark.parametrize(
    ("today", "verb"), [(date(2027, 1, 20), None), (date(2027, 2, 20), "ends on"), (date(2027, 5, 1), "ended on")]
)
def test_end_of_support(today: date, verb: str | None, tmp_path: Path) -> None:
    found = [str(problem) for problem in fleet_file(tmp_path, today=today).warnings]
    ends = [text for text in found if "standard support" in text]
    assert all(verb in text for text in ends) and ends if verb else not ends


def test_the_default_image_grows_old(tmp_path: Path) -> None:
    released = images.released(images.NODE_IMAGE)
    assert released is not None
    dated = ("{name: g5-on-demand,", "{name: g5-on-demand, image: bottlerocket@v1.60.0,")
    for age, warned in ((images.OLDEST, False), (images.OLDEST + timedelta(days=1), True)):
        found = [str(problem) for problem in fleet_file(tmp_path, dated, today=released + age).warnings]
        assert any(f"pools without image get {images.NODE_IMAGE}" in text for text in found) is warned


def test_a_kubernetes_version_without_a_node_image(tmp_path: Path) -> None:
    place = "    bucket: acme-east\n"
    found = fleet_file(tmp_path, (place, f'{place}    kubernetes: "1.37"\n'))
    expected = f"pools without image get {images.NODE_IMAGE}, which has no image for Kubernetes 1.37"
    assert any(expected in str(problem) for problem in found.warnings)


def test_all_problems_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec) as error:
        fleet_file(tmp_path, ("home: east", "home: nowhere"), ("cidr: 10.1.0.0/20", "cidr: 10.0.128.0/20"))
    assert len(str(error.value).splitlines()) == 2
