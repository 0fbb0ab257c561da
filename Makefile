# `make demo` and `make test` install colocam into .venv first; `make help` lists all targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NEED_GB := 8

.PHONY: help install demo test coverage fuzz docs dist dist-test lint format clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' Makefile

install: $(STAMP)  ## create the virtual environment .venv and install colocam (once)

$(STAMP): pyproject.toml setup.py constraints.txt $(wildcard src/colocam/native/*.[ch])
	@$(PYTHON) scripts/check_machine.py $(NEED_GB)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: install  ## make tagged videos, train both stages on the tags, evaluate, write demo/run-0/report/index.html
	$(BIN)/colocam demo --out demo

# Compiled files are kept, whatever the shell says: each worker and each process of a test would compile all tests again.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder

test: install  ## run the tests
	$(PYTEST)

coverage: install  ## run the tests and measure which lines they run; tracing takes half as long again
	$(PYTEST) -p tests.preload --cov=colocam --cov-report=term --cov-fail-under=93

MINUTES ?= 10
SEED ?= 0

fuzz: install  ## run mutated inputs through every command: make fuzz MINUTES=10 SEED=0
	OMP_NUM_THREADS=1 PYTHONHASHSEED=0 $(BIN)/python -m tests.fuzz --minutes $(MINUTES) --seed $(SEED)

DOCS_STAMP := $(VENV)/.docs-installed

docs: $(DOCS_STAMP)  ## build the documentation site: site/index.html
	$(BIN)/python scripts/docs_pages.py
	$(BIN)/zensical build --strict --clean
	$(BIN)/python scripts/check_site.py

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

dist: install  ## build the wheel and the source archive into dist
	rm -rf dist
	$(BIN)/python -m build

dist-test: install  ## install the wheel without torch into an empty environment and run its commands
	$(BIN)/python scripts/check_wheel.py

lint: install  ## check format, lint rules and types
	$(BIN)/ruff format --check src tests scripts setup.py
	$(BIN)/ruff check src tests scripts setup.py
	$(BIN)/mypy

format: install  ## format the code and apply automatic fixes
	$(BIN)/ruff format src tests scripts setup.py
	$(BIN)/ruff check --fix src tests scripts setup.py

clean:  ## remove .venv, the demo folder and what was built
	rm -rf $(VENV) demo dist build site .cache src/colocam/native/*.so
