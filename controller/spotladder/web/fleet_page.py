"""The page of the clusters: whether each answers, what is installed in it, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from spotladder.display.report.markup import Markup, element
from spotladder.places.fleet import ClusterSeen
from spotladder.places.place import Place
from spotladder.web.frame import framed, live, problems, table

HEADINGS = ("Cluster", "State", "Kubernetes", "KubeRay", "Karpenter", "Controller", "Kinds")


def fleet_page(places: Sequence[Place], clusters: Sequence[ClusterSeen]) -> str:
    """The page of these clusters, which are those of the places."""
    note = "As far as this page may read it; a dash: not found, or not readable."
    shown = [table("Clusters", HEADINGS, map(_row, clusters)), element("p", note, class_="note")]
    none = [element("p", "No cluster is configured: --kubeconfig or KUBECONFIG selects one.", class_="soft")]
    body = live(problems(places), *(shown if clusters else none))
    title = element("header", element("h1", "Fleet"))
    return framed("Fleet – spotladder", element("main", title, body), here="/fleet")


def _row(seen: ClusterSeen) -> Markup:
    word, tone = ("unreachable", "bad") if not seen.reachable else ("degraded", "caution") if seen.problem else ("", "")
    return element(
        "tr",
        element("th", seen.name, element("small", "home" if seen.home else "member"), scope="row"),
        element(
            "td",
            element("span", word or "reachable", class_=f"badge {tone or 'good'}"),
            element("small", seen.problem) if seen.problem else None,
            class_="text",
        ),
        *(element("td", text or "–") for text in (seen.kubernetes, seen.kuberay, seen.karpenter, seen.controller)),
        element("td", *(element("small", kind) for kind in seen.kinds), None if seen.kinds else "–"),
    )
