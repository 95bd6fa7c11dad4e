# `make run` and `make test` are all a newcomer needs; both make the environment first. Running needs a small part of it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.ready-server
READY := $(VENV)/.ready-dev
# Containers often set it. Then each of the processes that the tests start would compile the project anew.
unexport PYTHONDONTWRITEBYTECODE
PARALLEL := --numprocesses=auto --dist=worksteal
PYTEST := $(BIN)/python -m pytest $(PARALLEL)

.PHONY: run play test test-fast test-long test-package test-hosts test-others test-cluster test-harness kit fuzz coverage weights node-packages check docs recording screenshots attack train-modes \
  bench bench-peers peers performance determinism clean

run: $(RUN)
	$(BIN)/footlights serve

play: $(RUN)
	$(BIN)/footlights play

test: $(READY) weights node-packages
	@echo 'All tests but the long ones (make test-long): about 6 minutes on 2 cores.'
	$(PYTEST)

# The inner loop: the kernel, the laws and the dialects, without the turns that are cancelled everywhere.
VIEWS := tests/transports/views
FAST := tests/runtime tests/laws $(VIEWS)/kgent/pure $(VIEWS)/mission/pure $(VIEWS)/dexi/pure $(VIEWS)/dexi/test_dexi_matrix.py \
  $(VIEWS)/native/test_native.py $(VIEWS)/native/test_sse_cursor.py $(VIEWS)/native/test_sse_stream.py
test-fast: $(READY)
	@echo 'The kernel, the laws and the dialects: less than a minute on 2 cores.'
	$(PYTEST) $(FAST) --ignore=tests/laws/test_cancel_everywhere_turns.py

# What make test shows in small, at full length.
test-long: $(READY)
	@echo 'The long tests: about a minute on 2 cores.'
	$(PYTEST) -m long

# The package as a stranger gets it: sdist and wheel are built, and installed with each extra in new environments outside of
# the checkout. There the programs of the docs run, and a new game is made, played, served and tested. Needs a package index.
test-package: $(READY)
	@echo 'The package: about a minute and a half on 2 cores.'
	$(BIN)/python -m pytest -m package tests/suite/test_package.py tests/suite/test_kit_wheel.py

# The example that runs inside of another project's server, Evennia, in an environment of its own. Needs a package index.
test-hosts: $(READY) .venv-hosts/evennia/.ready
	@echo 'A game of Evennia, played over telnet: about three minutes on 2 cores.'
	$(BIN)/python -m pytest -m hosts tests/hosts

# Worlds with many owners: faults at every statement, processes and databases that are killed and stopped.
test-cluster: $(READY)
	@echo 'Worlds in PostgreSQL under faults: about two minutes on 2 cores.'
	$(PYTEST) -m cluster tests/cluster tests/benchmarks

# The figures of `footlights bench scenario` against those of an independent client, and its word on its own mistakes, in real
# time: on a machine that does nothing else.
test-harness: $(READY)
	@echo 'The harness, on a quiet machine: about six minutes on 2 cores.'
	$(BIN)/python -m pytest -m harness -rP tests/harness

# The wheel `footlights-kit`: the part of the test kit for any trio project, for people without Footlights.
kit: $(READY)
	cd runtime/kit_wheel && ../../$(BIN)/python -m hatchling build -t wheel -d ../../dist

# Code of other projects, cancelled everywhere with that wheel, in an environment of its own. Needs a package index.
test-others: .venv-others/.ready
	@echo 'Code of other projects, cancelled everywhere: half a minute.'
	.venv-others/bin/python -m pytest -c tests/others/pytest.ini -m others tests/others

# New examples for the property tests, for so many minutes. A failure prints the SEED that replays it.
MINUTES ?= 10
fuzz: $(READY)
	$(BIN)/python tests/fuzz.py $(if $(SEED),--seed $(SEED),--minutes $(MINUTES)) $(PARALLEL)

# make test, and the lines and branches that it does not reach. It takes half as long again.
coverage: $(READY) weights node-packages
	$(PYTEST) --cov --cov-report=term-missing:skip-covered

# Once: they are kept in the user's cache. Without them the tests of the local model are skipped, and say so.
weights: $(READY)
	@$(BIN)/footlights models fetch smollm2 || echo '*** NO WEIGHTS: the tests of the local model will be skipped. ***'

# Once: clients of other projects, from the npm registry, for the tests that run them against a server.
node-packages: $(READY)
	@$(BIN)/python -m tests.kit.peers.node_packages || echo '*** NO NODE PACKAGES: their clients will not be tested. ***'

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --warnings
	$(BIN)/lint-imports

# docs/recording/play.cast, and the picture of it in the README: real play on a pseudo-terminal.
recording: $(READY)
	$(BIN)/python docs/generate/recording.py
	$(BIN)/python docs/generate

# docs/pictures: the console in a real browser. Needs Chromium.
screenshots: $(READY)
	PYTHONPATH=. $(BIN)/python docs/generate/screenshots.py

# The weights by which a request for work is found, from the prompts in benchmarks/modes/labels: less than a minute.
train-modes: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -m modes.train

# The docs as a site. A link that leads nowhere, or a page that is in no table of contents, is an error.
docs: $(VENV)/.ready-docs
	$(BIN)/python -m sphinx -W --keep-going --quiet --builder html --conf-dir docs/site . build/site
	@echo 'Open build/site/docs/index.html in a browser.'

# Floods, slow clients, raw protocol cases, fairness and privacy, against a server of its own: about 10 minutes.
# ONLY='flood/pongs http' runs these, QUICK=1 shortens the floods. See docs/how-to/operate/attack-your-own-server.md.
attack: $(READY)
	$(BIN)/footlights bench attack $(if $(QUICK),--quick) $(foreach name,$(ONLY),--only $(name))

# What measures Footlights itself, one suite after the other. `make bench-core` runs one; QUICK=1 is a smoke test, and
# JSON=core.json also writes the figures. See benchmarks/README.md.
bench: bench-core bench-authority bench-models bench-wire bench-embed bench-start bench-counts

bench-%: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -m suites $* $(if $(QUICK),--quick) $(if $(STRICT),--strict) $(if $(JSON),--json $(JSON))

# The same turn in other frameworks, each in an environment of its own with the same Python; see benchmarks/peers.
PEERS := pipecat langgraph pydantic_ai pykka

bench-peers: peers
	PYTHONPATH=benchmarks $(BIN)/python -m peers.race

peers: $(READY)
	@for peer in $(PEERS); do \
	  $(MAKE) --no-print-directory .venv-peers/$$peer/.ready || echo "*** SKIPPED: no environment for $$peer. ***"; \
	done

# All of the above and the scenarios, and the page that tells of them: docs/performance.md. Less than 25 minutes on a machine
# that does nothing else. FULL=1 also measures what takes very long. ONLY='core wire' measures these, and the others keep
# their results and their dates.
performance: $(READY) weights peers
	$(BIN)/python -m suites.performance $(if $(FULL),--full) $(if $(ONLY),--only $(ONLY))

.venv-peers/%/.ready: benchmarks/peers/%/requirements.txt benchmarks/peers/%/constraints.txt
	rm -rf $(@D)
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c benchmarks/peers/$*/constraints.txt -r $<
	@touch $@

.venv-hosts/%/.ready: tests/hosts/%/requirements.txt tests/hosts/%/constraints.txt pyproject.toml
	rm -rf $(@D)
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c tests/hosts/$*/constraints.txt -r $< -e .
	@touch $@

.venv-others/.ready: tests/others/requirements.txt .ci/constraints.txt $(wildcard runtime/footlights_kit/*.py runtime/kit_wheel/*)
	@$(MAKE) --no-print-directory kit
	rm -rf $(@D)
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -r $< dist/footlights_kit-*.whl
	@touch $@

# The same digests on every Python that is on this machine, each in an environment of its own.
determinism: $(READY)
	$(BIN)/python tests/runtime/authority/determinism/determinism_everywhere.py

$(VENV)/.ready-%: pyproject.toml .ci/constraints.txt .ci/environment.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Footlights needs Python 3.11 or newer; run: make PYTHON=python3.12 ...")'
	@$(PYTHON) .ci/environment.py $(VENV) $*

clean:
	rm -rf $(VENV) .venv-peers .venv-hosts .venv-others build dist .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
