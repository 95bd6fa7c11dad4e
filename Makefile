# `make run` and `make test` are all a newcomer needs; both make the environment first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run play test weights check bench determinism clean

run: $(READY)
	$(BIN)/footlights serve

play: $(READY)
	$(BIN)/footlights play

test: $(READY) weights
	$(BIN)/python -m pytest --numprocesses=auto --dist=worksteal --cov --cov-report=term-missing:skip-covered

# Once: they are kept in the user's cache. Without them the tests of the local model are skipped, and say so.
weights: $(READY)
	@$(BIN)/footlights models fetch smollm2 || echo '*** NO WEIGHTS: the tests of the local model will be skipped. ***'

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --warnings
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/footlights bench core
	$(BIN)/footlights bench authority
	$(BIN)/footlights bench models
	$(BIN)/footlights bench wire
	$(BIN)/footlights bench embed

# The same digests on every Python that is on this machine, each in an environment of its own.
determinism: $(READY)
	$(BIN)/python tests/runtime/authority/determinism_everywhere.py

$(READY): pyproject.toml .ci/constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Footlights needs Python 3.11 or newer; run: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) dist .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
