from __future__ import annotations

import pytest

from spotladder.output.outage import LONGEST_MESSAGE, Outage, ReportedOutage, away_line, back_line, last_reported

OUTAGE = Outage(1_800_000_000.0, "connection refused")
LATER = Outage(1_800_000_600.0, "503 Slow Down")
DOING = "training continues and commits later"


def reported(outage: Outage, now: float, line: str = "") -> ReportedOutage:
    return ReportedOutage(outage, line or away_line(outage, now, DOING))


def test_the_line_has_the_start_of_the_outage_and_its_effect() -> None:
    assert away_line(OUTAGE, OUTAGE.since + 61.2, DOING) == (
        "the checkpoint store does not answer since 2027-01-15T08:00:00Z (61 s); training continues and commits later: "
        "connection refused"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("step 1\nstep 2\n", None),
        (f"step 1\n{away_line(OUTAGE, OUTAGE.since, DOING)}\nstep 2\n", reported(OUTAGE, OUTAGE.since)),
        (f"{away_line(OUTAGE, OUTAGE.since, DOING)}\n{back_line(10)}\n", None),
        (f"{back_line(10)}\n{away_line(LATER, LATER.since + 60, DOING)}\n", reported(LATER, LATER.since + 60)),
        (f"2027-01-15 08:00:00 WARNING train {away_line(OUTAGE, OUTAGE.since, DOING)}", reported(OUTAGE, OUTAGE.since)),
        ('"quoting: the checkpoint store does not answer since ever"', None),
    ],
    ids=["nothing", "other lines", "outage", "end of the outage", "another outage", "a logger's prefix", "a quotation"],
)
def test_the_last_line_about_the_outage_is_used(text: str, found: ReportedOutage | None) -> None:
    assert last_reported(text) == found


def test_rays_additions_to_the_line_are_removed() -> None:
    line = away_line(OUTAGE, OUTAGE.since, DOING)
    text = (
        f"\x1b[36m(RayTrainWorker pid=71, ip=10.0.0.7)\x1b[0m {line}\n"
        f"\x1b[36m(RayTrainWorker pid=72)\x1b[0m {line}\x1b[32m [repeated 2x across cluster] (Ray …)\x1b[0m\n"
    )
    found = last_reported(text)
    assert found is not None
    assert found.outage == OUTAGE


def test_the_message_is_one_short_line_without_secrets() -> None:
    long = Outage(OUTAGE.since, f"PUT https://me:hunter2hunter2@minio/b\nfailed {'x' * 1000}")
    found = last_reported(away_line(long, long.since, DOING))
    assert found is not None
    assert found.outage.message.startswith("PUT https://me:[redacted]@minio/b failed xxx")
    assert len(found.outage.message) == LONGEST_MESSAGE


def test_a_line_with_an_impossible_time_is_not_a_report() -> None:
    assert last_reported("the checkpoint store does not answer since 9999-99-99T99:99:99Z (1 s); a: b") is None
