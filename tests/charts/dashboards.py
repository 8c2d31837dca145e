"""Writes the Grafana dashboards of the chart: `make dashboards`.

A panel is a row of a table: title, unit, kind and queries. Gauges of jobs, tiers and clusters are those of the replica
that leads; counters are summed over all replicas.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "charts" / "spotladder" / "dashboards"
WIDTH, HEIGHT = 8, 7
"""The size of a panel; the grid of Grafana has 24 columns."""

LEADER = "and on (instance) spotladder_leading == 1"
JOB = 'namespace="$namespace",job="$job"'


@dataclass(frozen=True, slots=True)
class Panel:
    """`queries` maps the legend, with labels in double braces, to the expression."""

    title: str
    unit: str
    queries: dict[str, str]
    kind: str = "timeseries"
    about: str = ""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """`variables` are the names of labels of jobs that the reader chooses."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    variables: tuple[str, ...] = ()


def rate(counter: str, *by: str) -> str:
    """Events in an hour, by these labels."""
    return f"sum by ({', '.join(by)}) (rate({counter}[$__rate_interval])) * 3600"


def quantile(share: float, histogram: str, over: str = "$__rate_interval") -> str:
    return f"histogram_quantile({share}, sum by (le) (rate({histogram}_bucket[{over}])))"


def mine(gauge: str, labels: str = JOB) -> str:
    """A gauge of the chosen job, without the labels of the replica."""
    return f"max by (namespace, job) ({gauge}{{{labels}}} {LEADER})"


FLEET = Dashboard(
    "fleet",
    "spotladder / fleet",
    (
        Panel(
            "Jobs by phase",
            "short",
            {"{{phase}}": f"count by (phase) (spotladder_job_phase == 1 {LEADER})"},
            about="Jobs that have ended count until they are deleted.",
        ),
        Panel(
            "Deadlines at risk",
            "short",
            {"jobs": f"count(spotladder_job_deadline_slack_seconds < 0 {LEADER}) or vector(0)"},
            "stat",
        ),
        Panel(
            "Degraded jobs by reason",
            "short",
            {"{{reason}}": f"count by (reason) (spotladder_job_degraded == 1 {LEADER})"},
        ),
        Panel(
            "Spending in an hour",
            "currencyUSD",
            {"{{capacity_type}}": rate("spotladder_cost_usd_total", "capacity_type")},
        ),
        Panel(
            "Spending in an hour by namespace",
            "currencyUSD",
            {"{{namespace}}": rate("spotladder_namespace_cost_usd_total", "namespace")},
        ),
        Panel(
            "Saved in 24 hours",
            "currencyUSD",
            {"USD": "sum(increase(spotladder_saved_usd_total[24h]))"},
            "stat",
            "What the same nodes would have cost in addition on demand.",
        ),
        Panel("Lost pods in an hour by cause", "short", {"{{cause}}": rate("spotladder_failures_total", "cause")}),
        Panel("Lost pods in an hour by tier", "short", {"{{tier}}": rate("spotladder_failures_total", "tier")}),
        Panel("Fallbacks in an hour", "short", {"{{from}} → {{to}}": rate("spotladder_fallbacks_total", "from", "to")}),
        Panel(
            "Time until all workers are ready again",
            "s",
            {
                "median": quantile(0.5, "spotladder_fallback_seconds", "1h"),
                "p90": quantile(0.9, "spotladder_fallback_seconds", "1h"),
            },
        ),
        Panel(
            "Tiers with capacity", "bool_yes_no", {"{{tier}}": f"max by (tier) (spotladder_tier_available {LEADER})"}
        ),
        Panel("Ended attempts in an hour", "short", {"{{reason}}": rate("spotladder_attempts_total", "reason")}),
    ),
)

OF_A_JOB = Dashboard(
    "job",
    "spotladder / job",
    (
        Panel(
            "Phase",
            "short",
            {"{{phase}}": f"max by (phase) (spotladder_job_phase{{{JOB}}} {LEADER})"},
        ),
        Panel("Committed share of the steps", "percentunit", {"progress": mine("spotladder_job_progress_ratio")}),
        Panel("Age of the newest commit", "s", {"age": mine("spotladder_commit_age_seconds")}),
        Panel(
            "Time to lose before the deadline is at risk",
            "s",
            {"slack": mine("spotladder_job_deadline_slack_seconds")},
            about="Below 0, the next loss of nodes makes the job late. Empty without a deadline or known work.",
        ),
        Panel("Spent share of the budget", "percentunit", {"spent": mine("spotladder_job_budget_ratio")}),
        Panel("Attempts", "short", {"attempts": mine("spotladder_job_attempts")}),
        Panel("Problems", "short", {"{{reason}}": f"max by (reason) (spotladder_job_degraded{{{JOB}}} {LEADER})"}),
    ),
    ("namespace", "job"),
)

CONTROLLER = Dashboard(
    "controller",
    "spotladder / controller",
    (
        Panel("Leading", "short", {"{{instance}}": "spotladder_leading"}),
        Panel("Jobs in the workqueue", "short", {"jobs": f"max(spotladder_queue_depth {LEADER})"}),
        Panel(
            "Duration of a reconcile",
            "s",
            {
                "median": quantile(0.5, "spotladder_reconcile_seconds"),
                "p99": quantile(0.99, "spotladder_reconcile_seconds"),
            },
        ),
        Panel(
            "Reconciles per second",
            "short",
            {"reconciles": "sum(rate(spotladder_reconcile_seconds_count[$__rate_interval]))"},
        ),
        Panel(
            "Failed reconciles in an hour", "short", {"{{error}}": rate("spotladder_reconcile_errors_total", "error")}
        ),
        Panel(
            "API requests per second",
            "short",
            {"{{cluster}} {{code}}": "sum by (cluster, code) (rate(spotladder_api_requests_total[$__rate_interval]))"},
            about="Code 0: no response.",
        ),
        Panel(
            "API requests in an hour by kind",
            "short",
            {"{{verb}} {{resource}}": rate("spotladder_api_requests_total", "verb", "resource")},
        ),
        Panel(
            "Member clusters in use",
            "bool_yes_no",
            {"{{cluster}}": f"max by (cluster) (spotladder_cluster_up {LEADER})"},
        ),
        Panel(
            "Suspected nodes in an hour", "short", {"{{cluster}}": rate("spotladder_suspected_nodes_total", "cluster")}
        ),
        Panel("Jobs that avoid a bad node", "short", {"{{node}}": f"max by (node) (spotladder_bad_nodes {LEADER})"}),
    ),
)

DASHBOARDS = (FLEET, OF_A_JOB, CONTROLLER)
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def rendered(dashboard: Dashboard) -> str:
    """The dashboard in Grafana's JSON."""
    panels = [_panel(index, panel) for index, panel in enumerate(dashboard.panels)]
    source = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    content = {
        "uid": f"spotladder-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["spotladder"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "links": [{"type": "dashboards", "tags": ["spotladder"], "title": "spotladder", "asDropdown": True}],
        "templating": {"list": [source, *map(_variable, dashboard.variables)]},
        "panels": panels,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _panel(index: int, panel: Panel) -> dict[str, Any]:
    across = 24 // WIDTH
    targets = [
        {"refId": chr(ord("A") + place), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
        for place, (legend, query) in enumerate(panel.queries.items())
    ]
    return {
        "id": index + 1,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": {"x": index % across * WIDTH, "y": index // across * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": targets,
    }


def _variable(label: str) -> dict[str, Any]:
    chosen = '{namespace="$namespace"}' if label == "job" else ""
    return {
        "name": label,
        "label": label.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": {"qryType": 1, "query": f"label_values(spotladder_job_phase{chosen}, {label})", "refId": label},
        "refresh": 2,
        "sort": 1,
    }


def files() -> dict[Path, str]:
    """Each file of the chart, and its text."""
    return {FOLDER / f"{dashboard.name}.json": rendered(dashboard) for dashboard in DASHBOARDS}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
