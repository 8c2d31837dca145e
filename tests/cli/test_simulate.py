"""`spotladder simulate` as a user sees it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.api.builders import JOB, WORLD, changed, written
from tests.cli.terminal import Answer, call

Capture = pytest.CaptureFixture[str]


def window(*runs: tuple[int, int]) -> str:
    """A JSON window: one tick of 0 (available) or 1 (preempted) per entry."""
    data = [value for value, ticks in runs for _ in range(ticks)]
    return json.dumps({"metadata": {"gap_seconds": 600}, "data": data})


def simulated(capsys: Capture, folder: Path, *more: str | Path, text: str = "") -> Answer:
    file = written(folder, "zone.json", text or window((0, 30), (1, 12), (0, 80)))
    return call(capsys, "simulate", "--trace", file, "--hours", "6", *more)


HOUR_MS = 3_600_000


def changes(at: int) -> list[tuple[str, str]]:
    """Two more nodes come at each even hour and leave at each odd one."""
    return [("remove" if at // HOUR_MS % 2 else "add", node) for node in ("c", "d")]


def test_a_table_of_the_policies(capsys: Capture, tmp_path: Path) -> None:
    answer = simulated(capsys, tmp_path, "--deadline", "12h", "--policy", "ordered", "--provision-delay", "0s")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "6 h of work on 1 node; on demand without interruptions: $18.00"
    assert lines[1].split()[:3] == ["POLICY", "SUCCEEDED", "COST"]
    assert lines[2].split()[:4] == ["ordered", "1", "of", "1"]


def test_the_cost_of_one_run(capsys: Capture, tmp_path: Path) -> None:
    """Spot capacity ends after 5 h. The job waits ten minutes for it and then finishes on demand, from the newest
    commit."""
    options = ("--deadline", "12h", "--provision-delay", "0s", "--boot", "0s", "--restart", "0s", "--commit-time", "0s")
    found = json.loads(simulated(capsys, tmp_path, *options, "-o", "json").out)
    assert found["seeds"] == 1
    run = found["policies"][0]["runs"][0]
    assert (run["succeeded"], run["evictions"], run["attempts"], run["recomputedHours"]) == (True, 1, 2, 0.0)
    assert run["nodeHours"] == {"zone": 5.0, "on-demand": 1.0}
    assert run["costUsd"] == pytest.approx(5 * 1.0 + 1 * 3.0)
    assert run["finishHours"] == pytest.approx(5 + 1 / 6 + 1, abs=1e-3)


def test_seeds_can_be_repeated(capsys: Capture, tmp_path: Path) -> None:
    options = ("--deadline", "10h", "--seeds", "4", "-o", "json")
    first, again = (simulated(capsys, tmp_path, *options).out for _ in range(2))
    assert first == again
    assert len({run["costUsd"] for run in json.loads(first)["policies"][0]["runs"]}) > 1


def test_two_processes_give_the_same_result(capsys: Capture, tmp_path: Path) -> None:
    options = ("--deadline", "10h", "--seeds", "3", "--policy", "ordered", "--policy", "on-demand", "-o", "json")
    alone = simulated(capsys, tmp_path, *options)
    assert simulated(capsys, tmp_path, *options, "--processes", "2") == alone
    assert len(json.loads(alone.out)["policies"]) == 2


def test_the_tiers_of_a_job_file(capsys: Capture, tmp_path: Path) -> None:
    job, world = written(tmp_path, "job.yaml", JOB), written(tmp_path, "world.yaml", WORLD)
    trace = written(tmp_path, "zone.json", window((0, 6), (1, 60)))
    options = ("--job", job, "--world", world, "--trace", f"g5-spot-use1a={trace}", "--hours", "5", "--deadline", "9h")
    answer = call(capsys, "simulate", *options, "-o", "json")
    assert (answer.code, answer.err) == (0, "")
    run = json.loads(answer.out)["policies"][0]["runs"][0]
    assert set(run["nodeHours"]) == {"spot-a", "on-demand"}
    assert run["nodeHours"]["spot-a"] == pytest.approx(2 * (1 - 120 / 3600), abs=0.01)


def test_synthetic_traces_and_a_picture(capsys: Capture, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "costs.svg"
    options = ("--hours", "2", "--deadline", "6h", "--seeds", "3", "--plot", picture)
    answer = call(capsys, "simulate", "--trace", "synthetic", *options)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[-1] == f"Plot: {picture}"
    assert [
        title for title in ("share of runs", "Work over time", "Cost over time") if title not in picture.read_text()
    ] == []


def test_the_report_is_one_file_that_loads_nothing(capsys: Capture, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    answer = simulated(capsys, tmp_path, "--deadline", "12h", "--seeds", "2", "--report", page)
    assert (answer.code, answer.out.splitlines()[-1]) == (0, f"Report: {page}")
    text = page.read_text()
    assert "Simulated policies" in text
    assert "<h2>Cost and finish time</h2>" in text
    assert text.count("<circle") == 4, "both runs in two charts"
    assert "<h2>Work and cost over time, seed 0</h2>" in text
    assert "ordered" in text
    assert not [word for word in ("<script", "src=", "href=", "@import", "url(") if word in text]


def test_traces_like_a_recorded_one_and_their_survival_curves(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    file, picture = (
        written(tmp_path, "zone.json", window((0, 30), (1, 12), (0, 9), (1, 3), (0, 20))),
        tmp_path / "s.svg",
    )
    options = ("--hours", "2", "--deadline", "6h", "--seeds", "2", "--survival", picture, "-o", "json")
    answer = call(capsys, "simulate", "--trace", f"like=synthetic:{file}", *options)
    assert (answer.code, answer.err) == (0, "")
    assert set(json.loads(answer.out)["policies"][0]["runs"][1]["nodeHours"]) == {"like", "on-demand"}
    assert "Spells without capacity" in picture.read_text()
    monkeypatch.setattr("spotladder.sim.compare.compare", lambda *_, **__: pytest.fail("it is checked after the work"))
    answer = call(capsys, "simulate", "--trace", "synthetic", *options)
    assert answer.code == 2
    assert "--survival: needs a recorded trace" in answer.err


def test_a_synthetic_trace_is_fitted_to_the_capacity_for_all_workers(capsys: Capture, tmp_path: Path) -> None:
    """The source has four nodes, and in each second hour only two."""
    rounds = "".join(f"{at},{event},{node}\n" for at in range(0, 200 * HOUR_MS, HOUR_MS) for event, node in changes(at))
    source = written(tmp_path, "nodes.csv", f"0,add,a\n0,add,b\n{rounds}")
    options = ("--trace", f"zone=synthetic:{source}", "--hours", "4", "--deadline", "12h", "--seeds", "9", "-o", "json")
    two, four = (
        sum(run["nodeHours"]["zone"] / workers for run in json.loads(answer.out)["policies"][0]["runs"])
        for workers in (2, 4)
        for answer in [call(capsys, "simulate", *options, "--workers", str(workers))]
    )
    assert two > 9 * 3
    assert four < two / 2


def test_a_queue_delays_the_job(capsys: Capture, tmp_path: Path) -> None:
    quota = written(tmp_path, "quota.csv", "time,nodes\n0,0\n3600,4\n")
    options = ("--hours", "2", "--deadline", "12h", "--trace", "zone=synthetic", "-o", "json")
    run = json.loads(call(capsys, "simulate", *options, "--quota", f"zone={quota}").out)["policies"][0]["runs"][0]
    assert run["succeeded"]
    assert run["finishHours"] > 3
    answer = call(capsys, "simulate", *options, "--quota", f"west={quota}")
    assert (answer.code, answer.out) == (2, "")
    assert "--quota: expected ZONE=FILE with a zone of zone, on-demand, got 'west=" in answer.err


def test_jobs_share_the_capacity_of_a_zone(capsys: Capture, tmp_path: Path) -> None:
    """Three nodes for two jobs of two workers. The second job holds one node from its start, which takes 2 min, until
    it falls back after 10 min; with gangs that get
    all nodes or none, it holds none."""
    trace = written(tmp_path, "zone.csv", "time,nodes\n" + "".join(f"{600 * tick},3\n" for tick in range(90)))
    options = ("--trace", trace, "--workers", "2", "--hours", "5", "--deadline", "12h", "--jobs", "2", "--seeds", "2")
    for more, idle in (((), 8 / 60), (("--atomic",), 0.0)):
        answer = call(capsys, "simulate", *options, *more, "-o", "json")
        runs = json.loads(answer.out)["policies"][0]["runs"]
        assert [(run["seed"], run["job"]) for run in runs] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert all(run["succeeded"] for run in runs)
        for first, second in (runs[:2], runs[2:]):
            assert first["nodeHours"]["on-demand"] == 0
            assert second["nodeHours"]["zone"] == pytest.approx(idle, abs=1e-3)
            assert second["nodeHours"]["on-demand"] > 10
    page = tmp_path / "report.html"
    answer = call(capsys, "simulate", *options, "--report", page, "--processes", "2")
    assert answer.out.startswith("2 jobs that share the capacity, each 5 h of work on 2 nodes")
    assert " 4 of 4 " in answer.out
    assert "seed 1, job 1: $" in page.read_text()
    timeline = page.read_text().split("The run with seed 0")[1].split("</section>")[0]
    assert re.findall(r"<text[^>]*>(ordered|job \d+)</text>", timeline) == ["ordered", "job 1"]
    assert "zone: 0s – " in timeline, "the first job trains on spot"
    assert "on-demand: " in timeline, "the second one does not"


def test_jobs_that_are_submitted_one_after_the_other(capsys: Capture, tmp_path: Path) -> None:
    """Two nodes for two jobs of two workers. The second one is submitted 4 h after the first, waits for 10 min on spot
    capacity and falls back, because the first has the nodes for 5 h. With an interval of 6 h both are on spot."""
    pytest.importorskip("matplotlib")
    trace = written(tmp_path, "zone.csv", "time,nodes\n" + "".join(f"{600 * tick},2\n" for tick in range(120)))
    options = ("--trace", trace, "--workers", "2", "--hours", "5", "--deadline", "10h", "--jobs", "2")
    for interval, share in (("4h", 0.0), ("6h", 10.3)):
        answer = call(capsys, "simulate", *options, "--job-interval", interval, "-o", "json")
        first, second = json.loads(answer.out)["policies"][0]["runs"]
        assert (first["beginsAfterHours"], second["beginsAfterHours"]) == (0, float(interval[0]))
        assert second["succeeded"]
        assert second["finishHours"] == pytest.approx(first["finishHours"] + (0.0 if share else 10 / 60), abs=0.01)
        assert second["nodeHours"]["zone"] == pytest.approx(share, abs=0.2)
    page, picture = tmp_path / "report.html", tmp_path / "costs.svg"
    answer = call(capsys, "simulate", *options, "--job-interval", "4h", "--report", page, "--plot", picture)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("2 jobs that share the capacity, one every 4h, each 5 h of work on 2 nodes")
    by_job = answer.out.partition("Each job, means over the runs\n")[2].splitlines()
    assert [line.split()[:3] for line in by_job[1:3]] == [["ordered", "0", "0s"], ["ordered", "1", "4h"]]
    assert "<h2>Each job, means over the runs</h2>" in page.read_text()


def test_an_interval_of_jobs_needs_jobs(capsys: Capture, tmp_path: Path) -> None:
    answer = simulated(capsys, tmp_path, "--job-interval", "1h")
    assert (answer.code, answer.out, answer.err) == (2, "", "error: --job-interval: goes with --jobs\n")


def test_the_oracle_is_the_lower_bound_of_the_policies(capsys: Capture, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    policies = [word for name in ("oracle", "ordered", "uniform-progress") for word in ("--policy", name)]
    options = ("--deadline", "12h", "--seeds", "3", *policies)
    found = json.loads(simulated(capsys, tmp_path, *options, "-o", "json").out)["policies"]
    oracle, *others = ([run["costUsd"] for run in policy["runs"]] for policy in found)
    assert all(bound <= cost for costs in others for bound, cost in zip(oracle, costs, strict=True))
    answer = simulated(capsys, tmp_path, *options, "--report", page, "--processes", "2")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[2].split()[:4] == ["oracle", "3", "of", "3"]
    assert ">oracle</text>" in page.read_text()


def test_the_oracle_refuses_what_it_does_not_cover(capsys: Capture, tmp_path: Path) -> None:
    answer = simulated(capsys, tmp_path, "--deadline", "12h", "--policy", "oracle", "--jobs", "2", "--surge")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "error: --policy: oracle does not cover several jobs (--jobs) and programs that continue without workers that "
        "leave (--surge): compare without oracle\n"
    )


def test_jobs_with_a_quota_are_refused(capsys: Capture, tmp_path: Path) -> None:
    quota = written(tmp_path, "quota.csv", "time,nodes\n0,0\n3600,4\n")
    options = ("--hours", "2", "--trace", "zone=synthetic", "--quota", f"zone={quota}", "--jobs", "2")
    answer = call(capsys, "simulate", *options)
    assert (answer.code, answer.out) == (2, "")
    assert "--jobs: cannot be used with --quota: remove one of the two" in answer.err


def test_surge_keeps_the_attempt(capsys: Capture, tmp_path: Path) -> None:
    trace = written(
        tmp_path, "zone.csv", "time,nodes\n" + "".join(f"{600 * tick},{4 - (tick == 6)}\n" for tick in range(90))
    )
    options = ("--trace", trace, "--workers", "4", "--hours", "5", "--deadline", "12h", "--notice", "20m", "-o", "json")
    drained, kept = (
        json.loads(call(capsys, "simulate", *options, *more).out)["policies"][0]["runs"][0]
        for more in ((), ("--surge",))
    )
    assert drained["attempts"] > kept["attempts"] == 1
    assert kept["recomputedHours"] == 0.0
    assert kept["finishHours"] < drained["finishHours"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--policy", "orderd"), "error: --policy: no policy is called 'orderd'"),
        (("--deadline", "5h"), "--deadline: expected at least the work (6 h), got 5 h"),
        (("--deadline", "8"), "--deadline: '8' has no unit: write 8h, 8m or 8s"),
        (("--deadline", "2 days"), "--deadline: '2 days' is not a duration: write 48h"),
        (("--deadline", "400h"), "zone.json: lasts 20.33 h (expected 400 h or more"),
        (("--hours", "nan"), "Invalid value for '--hours': expected a number, 1000000 or less"),
        (("--hours", "1e9"), "Invalid value for '--hours': expected a number, 1000000 or less"),
        (("--commit-interval", "0s"), "--commit-interval: expected more than 0 s"),
        (("--polarity", "up"), "--polarity: expected available or preempted, got 'up'"),
        (("--plot", "costs.txt"), "--plot: must be a file name that ends with .png or .svg"),
        (("--world", "world.yaml"), "--world: goes with --job"),
        (("--job", "job.yaml", "--workers", "3"), "--workers: cannot be used with --job, which has workers"),
        (("--checkpoint-gib", "5"), "--checkpoint-gib: goes with --egress"),
        (("--egress", "egress.csv"), "--egress: goes with --checkpoint-gib"),
        (("--seeds", "0"), "--seeds"),
        (("--ray", "local", "--processes", "2"), "--processes: cannot be used with --ray, which uses its processors"),
        (("--trace", "nowhere.json"), "nowhere.json: cannot be read"),
        (("--trace", ""), "--trace: expected [ZONE=]FILE, [ZONE=]synthetic or [ZONE=]synthetic:FILE, got ''"),
        (("--trace", "b="), "--trace: expected [ZONE=]FILE"),
        (("--trace", "=b.json"), "--trace: expected [ZONE=]FILE"),
        (("--trace", "synthetic:"), "--trace: expected [ZONE=]FILE"),
        (("--spot-price", "inf"), "Invalid value for '--spot-price': expected a number, 1000000 or less"),
        (("--on-demand-price", "inf"), "Invalid value for '--on-demand-price': expected a number, 1000000 or less"),
    ],
)
def test_bad_input(capsys: Capture, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    answer = simulated(capsys, tmp_path, *options)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize(("option", "name"), [("--plot", "a.svg"), ("--survival", "a.svg"), ("--report", "a.html")])
def test_a_file_that_cannot_be_written_is_refused_before_the_simulation(
    option: str, name: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("spotladder.sim.compare.compare", lambda *_, **__: pytest.fail("it is checked after the work"))
    file = tmp_path / "nowhere" / name
    answer = simulated(capsys, tmp_path, option, file)
    assert (answer.code, answer.out) == (5, "")
    assert answer.err == f"error: {option}: {file} cannot be written: No such file or directory; name another file\n"


def test_a_wrong_polarity_is_noticed(capsys: Capture, tmp_path: Path) -> None:
    answer = simulated(capsys, tmp_path, text=window((1, 100)))
    assert answer.code == 2
    assert "there is never capacity: does a 1 mean the opposite?" in answer.err


def test_an_unused_capacity_tier(capsys: Capture, tmp_path: Path) -> None:
    job = written(tmp_path, "job.yaml", JOB)
    answer = simulated(capsys, tmp_path, "--job", job)
    assert answer.code == 2
    assert "'zone' is not a capacityTier of the job (expected one of g5-spot-use1a, g5-od-use1)" in answer.err


def test_a_budget_that_the_lowest_price_exceeds(capsys: Capture, tmp_path: Path) -> None:
    job = written(tmp_path, "job.yaml", changed(JOB, ("  suspend: false", '  suspend: false\n  budget: "4"')))
    options = ("--job", job, "--trace", "g5-spot-use1a=synthetic", "--hours", "5", "--spot-price", "0.5")
    answer = call(capsys, "simulate", *options)
    assert (answer.code, answer.out) == (2, "")
    said = "spec.budget: expected $5.00 or more (the work at the lowest price), got $4.00: raise it"
    assert answer.err == f"error: {job}:22:11: {said}\n"


def test_runs_that_do_not_end_are_stopped(capsys: Capture) -> None:
    answer = call(capsys, "simulate", "--trace", "synthetic", "--hours", "1", "--restart", "100h")
    assert answer.code == 0
    assert "ordered: runs without an end were stopped after 11h 00m\n" in answer.out
    assert "Whole" not in answer.out


def test_egress_prices_of_all_regions_are_needed(capsys: Capture, tmp_path: Path) -> None:
    header = "from_region,to_region,price_usd_per_gb\n"
    file = written(tmp_path, "egress.csv", f"{header}us-east-1,us-west-2,0.02\n")
    zones = ("--trace", "us-east-1a=synthetic", "--trace", "us-west-2b=synthetic", "--hours", "1", "--egress", file)
    answer = call(capsys, "simulate", *zones, "--checkpoint-gib", "1")
    assert (answer.code, answer.out) == (2, "")
    assert "egress.csv: has no price from us-west-2 to us-east-1: add a line for it" in answer.err


def test_adaptive_knows_the_egress_prices(capsys: Capture, tmp_path: Path) -> None:
    def mean(gib: str, price: str) -> tuple[float, float]:
        """The cost and the egress in USD."""
        header = "from_region,to_region,price_usd_per_gb"
        lines = f"{header}\nus-east-1,us-west-2,{price}\nus-west-2,us-east-1,{price}\n"
        file = written(tmp_path, "egress.csv", lines)
        zones = ("--trace", "us-east-1a=synthetic", "--trace", "us-west-2b=synthetic", "--probed")
        options = ("--hours", "5", "--deadline", "12h", "--seeds", "4", "--policy", "adaptive", "-o", "json")
        answer = call(capsys, "simulate", *zones, *options, "--egress", file, "--checkpoint-gib", gib)
        runs = json.loads(answer.out)["policies"][0]["runs"]
        return sum(run["costUsd"] for run in runs) / 4, sum(run["egressUsd"] for run in runs) / 4

    free, none = mean("1000", "0")
    assert none == 0
    small, paid = mean("1", "0.02")
    assert 0 < paid < small - free + 1
    large, most = mean("1000", "0.02")
    assert large <= 3.0 * 5 * 1.1, "no more than on demand with its starts"
    assert most < 1000 * paid


def of_dated_job(capsys: Capture, folder: Path, *more: str) -> Answer:
    dated = changed(JOB, ("spec:\n  tiers:\n", "spec:\n  deadline: 2026-01-01T09:00:00Z\n  tiers:\n"))
    job, world = written(folder, "job.yaml", dated), written(folder, "world.yaml", WORLD)
    trace = written(folder, "zone.json", window((0, 30), (1, 12), (0, 80)))
    options = ("--world", world, "--trace", f"g5-spot-use1a={trace}", "--hours", "5", "-o", "json")
    return call(capsys, "simulate", "--job", job, *options, *more)


def test_the_deadline_of_a_job_counts_from_the_start(capsys: Capture, tmp_path: Path) -> None:
    dated = of_dated_job(capsys, tmp_path, "--start", "2026-01-01T00:00:00Z")
    assert (dated.code, dated.err) == (0, "")
    assert dated.out == of_dated_job(capsys, tmp_path, "--deadline", "9h").out


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ((), "spec.deadline: is in the past (expected at least the work, 5 h"),
        (("--start", "2026-01-01T05:00:00Z"), "spec.deadline: leaves 4 h (expected at least the work, 5 h"),
        (("--start", "2026-01-01"), "--start: expected a date and a time with a time zone, as in 2026-12-01T00:00:00Z"),
        (("--start", "soon"), "--start: expected a date and a time with a time zone"),
    ],
)
def test_a_deadline_that_the_start_leaves_no_time_for(
    start: tuple[str, ...], said: str, capsys: Capture, tmp_path: Path
) -> None:
    answer = of_dated_job(capsys, tmp_path, *start)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_the_report_has_a_heat_map_of_the_availability(capsys: Capture, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert simulated(capsys, tmp_path, "--deadline", "12h", "--seeds", "2", "--report", page).code == 0
    text = page.read_text()
    assert "<h2>Availability</h2>" in text
    assert text.count("% of the runs have capacity") == 96
    assert "zone, 0.0 h: 100 % of the runs have capacity" in text or "zone, 0.0 h: 50 %" in text
