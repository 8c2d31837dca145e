# Every target is one line a person can also type. `make help` lists them.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# The bindings of AWS have files whose compilation takes longer than uv's minute on a busy machine.
UV     := UV_COMPILE_BYTECODE_TIMEOUT=900 $(BIN)/uv pip install --quiet --compile-bytecode --constraint constraints.txt
PROCESSES ?= 2
FRAMEWORK ?= tensorflow

.DEFAULT_GOAL := help
.PHONY: help setup reference schema setup-frameworks demo pictures test fuzz test-frameworks test-torch test-jax test-public test-raytrain test-ray test-tracking test-workflows test-stores test-web setup-web test-infra setup-infra doctor state plan bootstrap kubeconfig destroy rollout status drift rollback upgrade test-kube prometheus test-prometheus test-registry test-e2e test-smoke test-all test-day test-soak kind-up kind-down lint format crds dashboards constraints digests sbom bench mutation docs docs-build release clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

# The stamp depends on what is installed, so a changed dependency is installed and an unchanged one costs nothing.
$(VENV)/.setup: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "spotladder needs Python 3.11 or newer; set PYTHON=python3.x" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@echo "installing spotladder, Ray and TensorFlow into $(VENV) …"
	@$(UV) --editable '.[local,operator,notify,tensorflow,dev]'
	@touch $@

$(VENV)/.setup-frameworks: $(VENV)/.setup
	@echo "installing PyTorch and JAX (about 5 GB on Linux) …"
	@$(UV) --editable '.[local,operator,notify,tensorflow,torch,jax,dev]'
	@touch $@

setup: $(VENV)/.setup ## Make .venv with everything the demo and the tests need

setup-frameworks: $(VENV)/.setup-frameworks ## The same, with PyTorch and JAX

demo: $(if $(filter tensorflow,$(FRAMEWORK)),setup,setup-frameworks) ## Train on this machine while its spot nodes go away (FRAMEWORK=tensorflow|torch|jax)
	@$(BIN)/spotladder demo --framework $(FRAMEWORK)

ALONE := --ignore=tests/stores --ignore=tests/kube --ignore=tests/e2e --ignore=tests/day --ignore=tests/infra --ignore=tests/browser --ignore=tests/prometheus --ignore=tests/registry --ignore=tests/workflows

# One process runs the tests that start Ray, and each file in one process (tests/conftest.py).
SHARED := -n $(PROCESSES) --dist loadgroup --no-loadscope-reorder

test: setup ## Tests that need nothing but this machine
	$(BIN)/python -m pytest $(SHARED) -m "not frameworks" $(ALONE)

fuzz: setup ## Random bytes for each reader of foreign bytes, then the property tests with random examples (SECONDS=600 TARGETS=entries ROUNDS=10)
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(TARGETS)
	for round in $$(seq $(or $(ROUNDS),1)); do SPOTLADDER_FUZZ=1 $(BIN)/python -m pytest -q -n $(PROCESSES) -m "hypothesis and not frameworks" $(ALONE) || exit 1; done

test-frameworks: test-torch test-jax test-raytrain ## Tests of the PyTorch and JAX parts, and of Ray Train and Ray Tune with nodes that are lost

FRAMEWORKS := $(BIN)/python -m pytest -m frameworks

# PyTorch and JAX run in separate processes: the compilers that they bring do not work in the same one.
test-torch: ## Tests of the PyTorch parts
test-jax: ## Tests of the JAX parts
test-torch test-jax: setup-frameworks
	$(FRAMEWORKS) -k $(@:test-%=%) tests/frameworks/$(@:test-%=test_%*.py) tests/frameworks/test_compiled.py tests/frameworks/test_same_weights.py tests/examples

$(VENV)/.setup-public: $(VENV)/.setup-frameworks
	@$(UV) --editable '.[public]'
	@touch $@

# MosaicML's streams need older versions of some packages.
STREAMING_VENV := $(VENV)-streaming

$(STREAMING_VENV)/.setup: pyproject.toml constraints.txt | $(VENV)/.setup
	@test -x $(STREAMING_VENV)/bin/python || $(PYTHON) -m venv $(STREAMING_VENV)
	@grep -vE '^(huggingface-hub|numpy|tokenizers|transformers|xxhash)==' constraints.txt > $(STREAMING_VENV)/constraints.txt
	@$(BIN)/uv pip install --quiet --python $(STREAMING_VENV)/bin/python --constraint $(STREAMING_VENV)/constraints.txt --editable '.[operator,dev]' mosaicml-streaming==0.13.0 torch
	@touch $@

test-public: $(VENV)/.setup-public $(STREAMING_VENV)/.setup ## Public examples of the frameworks, each killed ten times, streams of data, and the documented scripts from the wheel
	SPOTLADDER_REQUIRE=public $(FRAMEWORKS) tests/frameworks/test_public_examples.py tests/frameworks/test_streams.py tests/frameworks/test_deepspeed.py tests/packaging/test_walk.py
	SPOTLADDER_REQUIRE=mosaicml $(STREAMING_VENV)/bin/python -m pytest -m frameworks tests/frameworks/test_streams.py -k mosaicml

test-raytrain: setup ## Ray Train and Ray Tune with nodes that are lost, and what `make demo` shows
	$(FRAMEWORKS) -k "raytrain or tune or tensorflow" tests/train tests/examples

# MLflow and Aim need older versions of three packages than constraints.txt has, so the trackers have a virtual
# environment of their own.
TRACKERS      := mlflow==3.17.2 wandb==0.31.0 tensorboard==2.21.0 tensorboardX 'aim==3.29.1; python_version < "3.13"'
TRACKING_VENV := $(VENV)-tracking

$(TRACKING_VENV)/.setup: pyproject.toml constraints.txt | $(VENV)/.setup
	@test -x $(TRACKING_VENV)/bin/python || $(PYTHON) -m venv $(TRACKING_VENV)
	@grep -vE '^(filelock|graphql-core|pyarrow)==' constraints.txt > $(TRACKING_VENV)/constraints.txt
	@$(BIN)/uv pip install --quiet --python $(TRACKING_VENV)/bin/python --constraint $(TRACKING_VENV)/constraints.txt --editable '.[operator,dev]' $(TRACKERS)
	@touch $@

test-tracking: $(TRACKING_VENV)/.setup ## One run of MLflow, W&B, TensorBoard and Aim for all attempts of a job
	SPOTLADDER_REQUIRE=tracking $(TRACKING_VENV)/bin/python -m pytest -m frameworks tests/frameworks/test_tracking.py

# The requirements of workflow engines exclude each other's and those of constraints.txt, so each engine has a virtual
# environment of its own, with the versions of all packages as of one day.
ENGINES := airflow dagster flyte prefect
PACKAGE_airflow := apache-airflow==3.3.2
PACKAGE_dagster := dagster==1.13.29
PACKAGE_flyte   := flytekit==1.16.31
PACKAGE_prefect := prefect==3.9.1

$(ENGINES:%=$(VENV)-%/.setup): $(VENV)-%/.setup: pyproject.toml | $(VENV)/.setup
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(BIN)/uv pip install --quiet --python $(@D)/bin/python --exclude-newer 2026-11-28 --editable '.[operator]' '$(PACKAGE_$*)'
	@touch $@

test-workflows: setup $(ENGINES:%=$(VENV)-%/.setup) ## The examples for Airflow, Dagster, Flyte and Prefect, each run by its engine (needs what test-kube needs; 700 MB of packages)
	SPOTLADDER_REQUIRE=workflows,kube $(BIN)/python -m pytest tests/workflows -n 0

# RAY is any supported version; the pin of constraints.txt is replaced in a virtual environment of its own. The first
# tests check the names of Ray that have no public API, in seconds; the others start Ray and lose its nodes. PART=names
# runs only the first.
RAY       ?= 2.60.0
RAY_VENV  := $(VENV)-ray-$(RAY)
RAY_TESTS := $(RAY_VENV)/bin/python -m pytest
RAY_NAMES := tests/train/test_rayinternals.py tests/local/test_raystart.py

$(RAY_VENV)/.setup: pyproject.toml constraints.txt | $(VENV)/.setup
	@test -x $(RAY_VENV)/bin/python || $(PYTHON) -m venv $(RAY_VENV)
	@echo "installing spotladder with Ray $(RAY) into $(RAY_VENV) …"
	@grep -v '^ray==' constraints.txt > $(RAY_VENV)/constraints.txt
	@$(BIN)/uv pip install --quiet --python $(RAY_VENV)/bin/python --constraint $(RAY_VENV)/constraints.txt --editable '.[local,operator,notify,tensorflow,dev]' 'ray==$(RAY)'
	@touch $@

test-ray: $(RAY_VENV)/.setup ## What depends on the version of Ray, with another one (RAY=2.58.0 PART=names)
	$(RAY_TESTS) $(RAY_NAMES)
ifneq ($(PART),names)
	$(RAY_TESTS) -n 0 -m ray tests/train tests/local tests/conformance
endif

$(VENV)/.setup-infra: $(VENV)/.setup
	@echo "installing the bindings of AWS and Google Cloud and an emulator of AWS (about 600 MB) …"
	@$(UV) --editable '.[local,operator,notify,tensorflow,dev,infra]'
	@test -x $(VENV)-checkov/bin/checkov || { $(PYTHON) -m venv $(VENV)-checkov && $(BIN)/uv pip install --quiet --python $(VENV)-checkov/bin/python 'checkov>=3.3,<4'; }
	@test -x $(VENV)-emulator/bin/ministack || { $(PYTHON) -m venv $(VENV)-emulator && $(BIN)/uv pip install --quiet --python $(VENV)-emulator/bin/python 'ministack>=1.5.33,<2'; }
	@touch $@

setup-infra: $(VENV)/.setup-infra ## The same, with the packages for the infrastructure

# Etcd of real clusters misses its deadlines beside other tests, so these come first and alone.
test-infra: setup-infra ## Terraform stacks: golden files, plans, policies, and a real apply on an emulator of AWS (needs terraform or tofu)
	$(BIN)/python -m pytest tests/infra/test_rollout.py
	$(BIN)/python -m pytest --ignore=tests/infra/test_rollout.py tests/infra $(SHARED)

setup-web: setup ## The same, with a driver of Chromium
	@$(UV) --editable '.[local,operator,notify,tensorflow,dev,browser,docs]'

test-web: setup-web ## The page of `spotladder web` and the documentation in a real Chromium (needs chromium, or its path in SPOTLADDER_CHROMIUM)
	$(BIN)/python -m pytest tests/browser

test-kube: setup ## The controller on a bare API server (needs etcd and kube-apiserver: KUBEBUILDER_ASSETS or SPOTLADDER_TOOLS)
	$(BIN)/python -m pytest tests/kube -n 2

# Prometheus without its service discovery, which is most of what it compiles.
TOOLS := $(or $(SPOTLADDER_TOOLS),$(HOME)/.cache/spotladder-tools)
PROMETHEUS ?= v0.316.0

$(TOOLS)/bin/prometheus:
	GOBIN=$(@D) go install -tags remove_all_sd github.com/prometheus/prometheus/cmd/promtool@$(PROMETHEUS) github.com/prometheus/prometheus/cmd/prometheus@$(PROMETHEUS)

prometheus: $(TOOLS)/bin/prometheus ## Build prometheus and promtool into the folder of tools (needs go)

test-prometheus: setup prometheus ## Dashboards, alerts and recording rules in a real Prometheus that scrapes a controller (needs what test-kube needs, and helm)
	SPOTLADDER_REQUIRE=prometheus $(BIN)/python -m pytest tests/prometheus -n 0

MINIO ?= v0.0.0-20260212201848-7aac2a2c5b7c

$(TOOLS)/bin/minio:
	GOBIN=$(@D) go install github.com/minio/minio@$(MINIO)

test-stores: setup $(TOOLS)/bin/minio ## The commit log on the stores of several vendors (needs npm and go)
	PATH="$(TOOLS)/bin:$$PATH" SPOTLADDER_REQUIRE=stores $(BIN)/python -m pytest tests/stores

REGISTRY ?= v0.22.1

$(TOOLS)/bin/registry:
	GOBIN=$(@D) go install github.com/google/go-containerregistry/cmd/registry@$(REGISTRY)

test-registry: setup $(TOOLS)/bin/registry ## The charts in a real OCI registry on this machine (needs go and helm)
	SPOTLADDER_REQUIRE=registry,kube $(BIN)/python -m pytest tests/registry -n 0

# Two tests at a time, each process with a cluster of its own. The tests of the pools need a third cluster, with
# Karpenter, and the removal undoes an installation: they run afterwards, alone.
E2E := $(BIN)/python -m pytest -v --durations=0

test-e2e: setup-infra ## Everything on real nodes that are killed, then the removal (needs root and SPOTLADDER_CLUSTER_TOOL; ONLY=zombie)
ifdef ONLY
	$(BIN)/python -m pytest tests/e2e -k $(ONLY)
else
	rm -rf .e2e-calls
	$(E2E) tests/e2e -n 2 --maxschedchunk 1 --ignore=tests/e2e/test_pools.py --ignore=tests/e2e/test_zz_removal.py
	$(E2E) tests/e2e/test_pools.py
	$(E2E) tests/e2e/test_zz_removal.py
endif

test-smoke: setup-infra ## The part of test-e2e that each change must pass: one test for each way to lose or to get capacity
	$(E2E) tests/e2e -m smoke -n 2 --maxschedchunk 1

test-all: lint test test-web test-stores test-kube test-prometheus test-registry test-infra test-frameworks test-public test-tracking test-workflows test-ray test-e2e ## Everything, one suite after the other (takes hours; PART=names shortens test-ray)

test-soak: setup ## An hour of losses, outages and attacks on real nodes (needs what test-e2e needs; MINUTES=60 SEED=1)
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),60) $(SEED:%=--seed %)

test-day: setup ## A day of recorded spot capacity on real nodes, and the simulator's prediction (needs what test-e2e needs, and SPOTLADDER_TRACES)
	$(BIN)/python -m pytest tests/day -v -s

# --- Infrastructure: FLEET=fleet.yaml, CLUSTER=name (or several) or CLOUD=aws|gcp|existing|kind (all clusters when empty) ---
FLEET   ?= fleet.yaml
CLUSTER ?=
CLOUD   ?=
INFRA   := $(BIN)/spotladder infra
CHOSEN  = --fleet $(FLEET) $(CLUSTER:%=--cluster %) $(if $(CLOUD),--cloud $(CLOUD))
ANSWER  = $(if $(filter yes,$(YES)),--yes)

doctor: setup-infra ## Check programs, credentials, quotas and names before bootstrap
	@$(INFRA) doctor $(CHOSEN)

state: setup-infra ## Create the bucket for Terraform's state
	@$(INFRA) state --fleet $(FLEET)

plan: setup-infra ## Show what bootstrap would create and change, and what it costs
	@$(INFRA) plan $(CHOSEN)

bootstrap: setup-infra ## Create the clusters of the fleet file, or change them to match it (YES=yes: do not ask)
	@$(INFRA) bootstrap $(CHOSEN) $(ANSWER)

kubeconfig: setup-infra ## Write a kubeconfig for the created clusters and print its path
	@$(INFRA) kubeconfig $(CHOSEN)

destroy: setup-infra ## Delete the clusters and list what is left (YES=yes DELETE_CHECKPOINTS=yes)
	@$(INFRA) destroy $(CHOSEN) $(ANSWER) $(if $(filter yes,$(DELETE_CHECKPOINTS)),--delete-checkpoints) $(if $(filter yes,$(SKIP_PLATFORM)),--skip-platform)

rollout status drift rollback upgrade: setup-infra
	@$(INFRA) $@ $(CHOSEN) $(ROLLOUT)

rollout: ## Install or upgrade Karpenter, pools, KubeRay and the controller, in waves (ROLLOUT='--dry-run' or '--no-smoke')
status: ## Versions and readiness of the components in each cluster
drift: ## Manual changes in the clusters
rollback: ## Restore the last good rollout of the clusters
upgrade: ## Upgrade Karpenter and KubeRay while Karpenter removes no node (ROLLOUT=--apply)

kind-up: setup-infra ## A kind cluster with KubeRay and the controller (needs docker, kind, kubectl, helm, pulumi)
	@SPOTLADDER=$(BIN)/spotladder infra/kind/up

kind-down: ## Remove that cluster
	kind delete cluster --name spotladder && rm -rf .spotladder/kind

lint: setup ## Formatting, style, types and import rules
	$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy && $(BIN)/lint-imports --no-cache

format: setup ## Format the code
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

crds: setup ## The CustomResourceDefinitions of charts/spotladder-crds, from the models
	$(BIN)/spotladder crds --to charts/spotladder-crds/templates

dashboards: setup ## The Grafana dashboards of charts/spotladder
	$(BIN)/python -m tests.charts.dashboards

constraints: setup ## Pin the newest versions that fit together
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade --all-extras pyproject.toml -o constraints.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --generate-hashes --constraint constraints.txt --extra operator --extra notify --extra aws pyproject.toml -o image.lock

digests: setup ## The digests of the public charts at their pinned versions, for DIGESTS in infra/spotladder_infra/rollout/components.py (needs helm and a network)
	@$(BIN)/python -m tests.topology.digests

sbom: setup ## The packages of the controller's image as a CycloneDX document, into dist
	@mkdir -p dist && $(BIN)/python -m tests.packaging.sbom > dist/spotladder.cdx.json

bench: setup ## Figures beside a peer or a limit, into .bench and tests/bench/results.md
	$(BIN)/python -m tests.bench

mutation: setup ## Change the code at random places and count what no test notices (PART=core|operator SAMPLE=400 SEED=1)
	$(BIN)/python -m tests.mutation

# A virtual environment of its own: the documentation builds in seconds, without Ray.
DOCS_VENV := $(VENV)-docs
MKDOCS    := NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs

$(DOCS_VENV)/.setup: pyproject.toml constraints.txt
	@test -x $(DOCS_VENV)/bin/python || $(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt mkdocs-material
	@touch $@

docs: $(DOCS_VENV)/.setup ## Serve the documentation on this machine, and build it again when a page changes (ADDRESS=127.0.0.1:8008)
	@$(MKDOCS) serve --dev-addr $(or $(ADDRESS),127.0.0.1:8008)

docs-build: $(DOCS_VENV)/.setup ## Write the documentation to build/docs; it needs no server. A broken link fails
	@$(MKDOCS) build --strict --quiet && echo "open build/docs/index.html"

release: setup docs-build ## Build wheel, source distribution, charts, documentation, SBOM, provenance and checksums into dist, sign them with SIGNING_KEY, and check them without a network (needs helm)
	.ci/release

clean: ## Remove what was built here
	rm -rf $(VENV) $(VENV)-ray-* $(VENV)-checkov $(VENV)-emulator $(VENV)-docs $(TRACKING_VENV) $(STREAMING_VENV) $(ENGINES:%=$(VENV)-%) build .bench .mutation .mypy_cache .ruff_cache .pytest_cache .hypothesis dist spotladder-demo

pictures: setup setup-web ## Draw the pictures of the README
	$(BIN)/python docs/images/record.py
	$(BIN)/python -m tests.browser.screenshot

schema: setup ## Write the JSON schemas of job files and fleet files beside the examples
	$(BIN)/spotladder schema > examples/spotladder.schema.json
	$(BIN)/spotladder infra schema > examples/fleet/fleet.schema.json

reference: setup ## Write docs/reference.md from the models, and docs/cli.md from the commands
	$(BIN)/python -m tests.docs.reference > docs/reference.md
	$(BIN)/python -m tests.docs.cli_reference > docs/cli.md
