# The controller, and the CLI for who has no Python: docker build -t spotladder .
# With clusters on GKE beside home: --build-arg EXTRAS=operator,notify,aws,gcp
# The base is pinned by digest, dependencies by image.lock with digests, and those of other EXTRAS by constraints.txt.
# docs/runbook.md says how to move them. With SOURCE_DATE_EPOCH and BuildKit's output option rewrite-timestamp=true, the
# same commit gives the same layers: bytecode does not depend on the times of its sources.
ARG PYTHON=python:3.13-slim-trixie@sha256:9d2e5553305c7c7b0097999bb17187c69b921ccd6bc9d40e4bb5ebe652c00285

FROM ${PYTHON} AS build
ARG EXTRAS=operator,notify,aws
ENV UV_COMPILE_BYTECODE=1 PYC_INVALIDATION_MODE=UNCHECKED_HASH UV_LINK_MODE=copy UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never
WORKDIR /build
COPY constraints.txt image.lock ./
RUN pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt uv \
 && uv venv /opt/spotladder \
 && uv pip install --python /opt/spotladder/bin/python --require-hashes --requirement image.lock
COPY pyproject.toml README.md LICENSE ./
COPY controller ./controller
COPY charts ./charts
COPY examples ./examples
COPY infra/spotladder_infra ./infra/spotladder_infra
# uv_cache.json has the time of the build.
RUN uv pip install --python /opt/spotladder/bin/python --constraint constraints.txt ".[${EXTRAS}]" \
 && cd /opt/spotladder/lib/python*/site-packages/spotladder-*.dist-info && rm uv_cache.json && sed -i /uv_cache.json/d RECORD

FROM ${PYTHON}
LABEL org.opencontainers.image.title="spotladder" org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/spotladder /opt/spotladder
ENV PATH=/opt/spotladder/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["spotladder"]
CMD ["--help"]
