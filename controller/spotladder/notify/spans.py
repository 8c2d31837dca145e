"""Traces by OpenTelemetry's protocol, OTLP over HTTP."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from spotladder.display.report.facts import RunFacts
from spotladder.records.restarts import Restart

FLUSH_TIMEOUT = 10.0
"""Seconds that the process waits at its end for spans that are not sent."""


class Spans:
    """Sends spans to the collector at `endpoint`, such as http://collector:4318. The environment variables of
    OpenTelemetry apply, such as OTEL_EXPORTER_OTLP_HEADERS."""

    def __init__(self, endpoint: str) -> None:
        self._provider = TracerProvider(resource=Resource.create({SERVICE_NAME: "spotladder"}), shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("spotladder")

    def send(self, place: str, facts: RunFacts, restart: Restart) -> None:
        """Send a span of the restart, with one of each part below it, soon and in the background."""
        about = {
            "k8s.cluster.name": place,
            "k8s.namespace.name": facts.namespace,
            "spotladder.job": facts.job,
            "spotladder.attempt": restart.attempt,
            "spotladder.tier": restart.tier,
            "spotladder.reason": str(restart.reason),
            "spotladder.noticed": restart.noticed,
        }

        def ended(name: str, begin: float, end: float, parent: Context | None = None) -> Context:
            span = self._tracer.start_span(name, parent, attributes=about, start_time=round(begin * 1e9))
            span.end(round(end * 1e9))
            return trace.set_span_in_context(span)

        whole = ended("restart", restart.parts[0].begin, restart.parts[-1].end)
        for part in restart.parts:
            ended(part.name, part.begin, part.end, whole)

    def close(self) -> None:
        """Send what is left, within `FLUSH_TIMEOUT`."""
        self._provider.force_flush(int(FLUSH_TIMEOUT * 1000))
        self._provider.shutdown()
