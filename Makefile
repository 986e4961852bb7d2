# Aliases only: everything is behind benn-fpga, pytest, ruff and mypy. `make help` lists them.

PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
STAMP := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test quick icarus verify coverage bench bench-hw lint clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 16

setup: $(STAMP) ## make .venv and install everything into it

$(STAMP): pyproject.toml constraints.txt
	@echo 'setup: making .venv and installing the packages of constraints.txt: 2.2 GB, some minutes'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
	@echo 'setup: done; ". .venv/bin/activate" gives you benn-fpga, "benn-fpga doctor" checks the tools'

demo: setup ## train, evaluate, generate and simulate an ensemble; print one table
	$(BIN)/python examples/demo.py

test: setup ## run all tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup

quick: setup ## run the tests that need neither simulator nor training
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup -m "not sim and not train and not verify"

icarus: setup ## run generated Verilog in Icarus Verilog (apt install iverilog)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) -m verify tests/sim/test_icarus.py

verify: setup ## run the long campaigns
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m verify

coverage: setup ## run all tests, and print which share of the lines they reach
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup --cov --cov-report=term:skip-covered

bench: setup ## measure generation and training speed
	$(BIN)/python examples/bench.py

bench-hw: setup ## synthesise designs, place and route them; an hour, what was done before is kept
	$(BIN)/python examples/silicon.py

lint: setup ## check style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

clean: ## remove everything that was made, but not .venv
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage*
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
