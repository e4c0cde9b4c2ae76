# The two commands: `make demo` and `make test`. Each creates what it needs, in folders beside this file.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKER := .venv-worker
PEERS := .venv-peers
SERVERS := .venv-servers
PIP_QUIET := --quiet --disable-pip-version-check

.PHONY: help demo demo-mini test test-full lint docs bench clean browser wordnet postgres

help:
	@echo "make demo       build clips of Overtone-Open, run the embedded models over them, write demo/report.html"
	@echo "make demo-mini  install the trained model mini (weights/mini, torch for the CPU), run it beside the others"
	@echo "make test       all quick tests"
	@echo "make test-full  the long ones too: 100 kills, whole builds"
	@echo "make lint       ruff, mypy and plain English"
	@echo "make docs       build the documentation site in site/"
	@echo "make bench      measure throughput, overhead, start-up and memory"

# ── environments ──────────────────────────────────────────────────────────────────────────────────────────────────────
$(VENV)/.core: pyproject.toml src/overtone/embedded/local.lock
	@$(PYTHON) -c 'import sys; sys.exit("Overtone needs Python 3.11 or newer, not " + sys.version.split()[0]) if sys.version_info < (3, 11) else 0'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "creating $(VENV) failed: apt install python3-venv"; rm -rf $(VENV); exit 1; }
	$(BIN)/python -m pip install $(PIP_QUIET) --editable .
	$(BIN)/overtone setup local
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install $(PIP_QUIET) --editable '.[dev]'
	@touch $@

# The workers' models live apart: torch is no part of Overtone's own environment.
$(WORKER)/.ready: src/overtone/workers/requirements-test.txt
	@test -x $(WORKER)/bin/python || $(PYTHON) -m venv $(WORKER)
	$(WORKER)/bin/python -m pip install $(PIP_QUIET) --no-deps --requirement $<
	@touch $@

# Programs of other projects that read what Overtone writes, and Ray, for `make test-full`.
$(PEERS)/.ready: tests/peers.txt pyproject.toml
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install $(PIP_QUIET) --editable '.[export,mlflow,ray,wandb]' --requirement $<
	@touch $@

# Model servers that tests start, for `make test-full`.
$(SERVERS)/.ready: tests/servers.txt
	@test -x $(SERVERS)/bin/python || $(PYTHON) -m venv $(SERVERS)
	$(SERVERS)/bin/python -m pip install $(PIP_QUIET) --requirement $<
	@touch $@

# $(call from_debian,IS IT HERE?,PACKAGES,NAME): install from Debian where we may; otherwise tests skip and METEOR stays empty.
define from_debian
@if $(1); then :; \
elif command -v apt-get >/dev/null && { [ "$$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then \
	root=$$([ "$$(id -u)" = 0 ] || echo sudo -n); \
	$$root apt-get update -qq && $$root apt-get install -y -qq --no-install-recommends $(2) >/dev/null || echo "no $(3): what needs it is left out"; \
else echo "no $(3) and no right to install it: what needs it is left out"; fi
endef

browser:
	$(call from_debian,command -v chromium >/dev/null,chromium,browser)

wordnet:
	$(call from_debian,[ -e /usr/share/wordnet/data.noun ],wordnet-base,WordNet)

# Tests start servers of their own. The setting between the two steps keeps Debian from starting another one.
CLUSTERS := /etc/postgresql-common/createcluster.conf
HAS_POSTGRES := ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1

postgres:
	$(call from_debian,$(HAS_POSTGRES) || [ -e $(CLUSTERS) ],postgresql-common,PostgreSQL)
	@$(HAS_POSTGRES) || [ ! -e $(CLUSTERS) ] || \
		$$([ "$$(id -u)" = 0 ] || echo sudo -n) sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' $(CLUSTERS)
	$(call from_debian,$(HAS_POSTGRES),postgresql,PostgreSQL)

# ── commands ──────────────────────────────────────────────────────────────────────────────────────────────────────────
demo: $(VENV)/.core wordnet
	$(BIN)/overtone demo --out demo

# Torch is installed into the measuring environment, not into this one.
demo-mini: $(VENV)/.core wordnet
	$(BIN)/overtone setup mini
	$(BIN)/overtone demo --mini --out demo-mini

# One thread of arithmetic each: tests start processes of their own, and more threads than cores only wait. Those of
# echat borrow torch from the workers' environment, in a process of their own.
test test-full: export OPENBLAS_NUM_THREADS = 1
test test-full: export OVERTONE_MEASURES = $(CURDIR)/$(WORKER)
test: $(VENV)/.dev $(WORKER)/.ready browser wordnet postgres
	$(BIN)/python -m pytest -m "not full" -n 2 --dist loadfile --ignore tests/echat --ignore tests/experiments
	$(BIN)/python -m pytest -m "not full" -n 2 --dist loadfile tests/echat tests/experiments

test-full: $(VENV)/.dev $(WORKER)/.ready $(PEERS)/.ready $(SERVERS)/.ready browser wordnet postgres
	$(BIN)/python -m pytest --ignore tests/echat --ignore tests/experiments
	$(BIN)/python -m pytest tests/echat tests/experiments

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/prose.py

docs: $(VENV)/.dev
	$(BIN)/python -m scripts.docs_site

bench: $(VENV)/.dev
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) $(WORKER) $(PEERS) $(SERVERS) demo demo-mini site
