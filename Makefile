# Two commands on a fresh machine (Python 3.11 or newer, make): `make quickstart` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: quickstart test test-slow lint clean
quickstart: .venv/installed
	$(BIN)/python -m jobs.quickstart

test: .venv/installed-test lint
	RAY_AUTH_MODE=disabled $(BIN)/python -m pytest -m "not slow and not collection and not gpu"

# minutes: real collections below $$GAREN_COLLECTIONS, Ray clusters, jobs that are killed
test-slow: .venv/installed-test
	RAY_AUTH_MODE=disabled $(BIN)/python -m pytest -m "(slow or collection) and not gpu"

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/mypy

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .[cpu]
	touch $@

.venv/installed-test: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .[cpu,test]
	touch $@

clean:
	rm -rf .venv *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
