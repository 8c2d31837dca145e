"""Messages: one notice, or the digest of many that came within a short time."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from urllib.parse import quote

from spotladder.display.figures import numbered
from spotladder.notify.notices import Kind, Notice
from spotladder.timestamps import utc_timestamp

LISTED = 20
"""Number of notices that a digest lists."""

LONGEST_TEXT = 300
"""Maximum characters of one notice in a message."""

VERBS = {
    Kind.FELL_BACK: "fell back",
    Kind.RETURNED: "returned",
    Kind.EXHAUSTED: "exhausted all tiers",
    Kind.DEGRADED: "degraded",
    Kind.DEADLINE: "near the deadline",
    Kind.BUDGET: "near the budget",
    Kind.SUCCEEDED: "succeeded",
    Kind.FAILED: "failed",
}


@dataclass(frozen=True, slots=True)
class Message:
    """One message about one or more notices."""

    notices: tuple[Notice, ...]

    @property
    def title(self) -> str:
        """One line: the kind of the notice, or the number of jobs for each kind."""
        if len(self.notices) == 1:
            one = self.notices[0]
            return f"{one.kind}: {one.namespace}/{one.job} ({one.where})"
        counts = Counter(notice.kind for notice in self.notices)
        return ", ".join(f"{numbered(counts[kind], 'job')} {VERBS[kind]}" for kind in VERBS if counts[kind])

    @property
    def body(self) -> str:
        """The sentences, one in a line."""
        lines = [_inert(_shortened(notice.text)) for notice in self.notices[:LISTED]]
        left = len(self.notices) - LISTED
        return "\n".join([*lines, f"and {left} more"] if left > 0 else lines)

    def cloud_events(self) -> bytes:
        """The notices as a batch of CloudEvents 1.0 in JSON."""
        return json.dumps([_cloud_event(notice) for notice in self.notices]).encode()


def _cloud_event(notice: Notice) -> dict[str, object]:
    path = "/".join(quote(part, safe="") for part in (notice.where, notice.namespace, notice.job))
    data = {
        "job": notice.job,
        "namespace": notice.namespace,
        "where": notice.where,
        "attempt": notice.attempt,
        "kind": notice.kind,
        "detail": notice.detail,
        "text": notice.text,
    }
    return {
        "specversion": "1.0",
        "id": notice.id,
        "source": f"/spotladder/{path}",
        "time": utc_timestamp(notice.at),
        "type": f"io.spotladder.job.{notice.kind.lower()}",
        "datacontenttype": "application/json",
        "data": data,
    }


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _inert(text: str) -> str:
    """The text without mentions, links and markup of chats, which a program may have printed: a space of no width
    separates their characters."""
    return text.replace("@", "@\u200b").replace("<", "<\u200b").replace("](", "]\u200b(")
