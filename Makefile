# Everything from a fresh clone, nothing else typed: `make quickstart`, `make test`.
# Installs are editable, so that a pulled change takes effect at once; stamps in .venv say what is installed.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for each in python3.11 python3.12 python3.13 python3; do \
	command -v $$each >/dev/null && $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$each && break; done)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help quickstart install test lint soak bench docs clean

help:
	@echo "make quickstart   install, and train tic-tac-toe (seven minutes on two cores, after installing)"
	@echo "make test         install what tests need, and run them all"
	@echo "make lint         format, lint, types, floors"
	@echo "make soak         the long forms of the tests"
	@echo "make bench        the speed figures of the documentation"
	@echo "make docs         rewrite the page of all settings and the tables of baselines"
	@echo "make clean        remove .venv and caches; runs stay"

quickstart: install
	$(BIN)/latih train tic_tac_toe

install: $(VENV)/.installed

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "latih needs Python 3.11 or newer, and none was found: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -c constraints.txt -e '.[test]'
	@touch $(VENV)/.installed $@

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "not soak"

lint: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m soak --hypothesis-profile soak --timeout 7200

bench: $(VENV)/.installed-test
	for each in sampling learning exactness startup; do $(BIN)/python bench/$$each.py || exit 1; done

docs: $(VENV)/.installed
	$(BIN)/python docs/configuration.py
	$(BIN)/python docs/baselines.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
