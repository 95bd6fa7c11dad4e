# `make run` and `make test` are all a newcomer needs; both make the environment first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run test check bench clean

run: $(READY)
	$(BIN)/footlights play

test: $(READY)
	$(BIN)/python -m pytest --cov --cov-report=term-missing:skip-covered

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --warnings
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/footlights bench core

$(READY): pyproject.toml .ci/constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Footlights needs Python 3.11 or newer; run: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) dist .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
