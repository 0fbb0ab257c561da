# `make demo` and `make test` install colocam into .venv first; `make help` lists all targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NEED_GB := 8

.PHONY: help install demo browser test lowest lowest-train coverage fuzz notebook container image docs dist archive wheels dist-test \
  check-release lint format clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

install: $(STAMP)  ## create the virtual environment .venv and install colocam (once)

$(STAMP): pyproject.toml setup.py constraints.txt $(wildcard src/colocam/native/*.[ch])
	@$(PYTHON) scripts/check_machine.py $(NEED_GB)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: install  ## make tagged videos, train on the tags, show boxes, write demo/run-0/report/index.html (5 to 10 minutes)
	$(BIN)/colocam demo --out demo

# Compiled files are kept, whatever the shell says: each worker and each process of a test would compile all tests again.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder

ROOM ?=

test: install  ## run the tests; those of one room: make test ROOM=labels
	$(PYTEST) $(if $(ROOM),tests/$(ROOM))

browser: install  ## install Chromium for the tests of the page, where the system has none
	[ -x /usr/bin/chromium ] || $(BIN)/playwright install --with-deps chromium

coverage: install  ## run the tests and measure which lines they run; tracing takes half as long again
	$(PYTEST) --cov=colocam --cov-report=term --cov-fail-under=93

LOW := .venv-lowest
LOW_PIP := $(LOW)/bin/python -m pip install --quiet --disable-pip-version-check -c $(LOW)/constraints.txt
LOW_PYTEST := OMP_NUM_THREADS=1 $(LOW)/bin/python -m pytest -q -n 2 --dist loadscope
# What needs no torch, and together uses every other dependency.
LOW_TESTS := test_without_torch.py video/test_images.py video/test_input.py video/test_reader.py video/test_resizing.py \
  video/test_writer.py config/test_card.py boxes/test_candidates.py boxes/test_rle.py \
  labels/test_part_files.py labels/test_from_cvat.py labels/test_from_label_studio.py \
  labels/test_round_trips.py evaluation/test_prediction_files.py evaluation/test_tensorboard_log.py \
  labels/test_cvat.py labels/test_flat_and_masks.py labels/test_label_studio.py labels/test_labeled_videos.py \
  inference/test_engine.py inference/test_stored_model.py inference/test_videos.py labels/test_table.py \
  integrations/test_cvat_tasks.py integrations/test_label_studio_backend.py serve/test_routes.py utils/test_device.py \
  utils/test_progress.py utils/test_tables.py

lowest:  ## run a part of the tests with the lowest version of each dependency, in .venv-lowest without torch
	$(PYTHON) -m venv --clear $(LOW)
	$(PYTHON) scripts/lowest.py > $(LOW)/constraints.txt
	$(LOW_PIP) -e '.[parquet,serve,tensorboard,cvat]' onnx scipy pycocotools label-studio-tools cvat-cli \
	  pytest pytest-cov pytest-xdist hypothesis httpx
	# Run folders need torch. OpenCV 4.10 decodes videos to other colors, so it is no reference for ours.
	$(LOW_PYTEST) -k 'not run- and not another_reader' $(addprefix tests/,$(LOW_TESTS))

TORCH ?= torch torchvision
LOW_TRAIN_TESTS := integrations/test_onnx_export.py models/test_model_file.py models/test_networks.py \
  report/test_page.py training/test_train.py

lowest-train: lowest  ## the same for the packages of training, beside a torch of any version; downloads gigabytes
	$(PYTHON) scripts/lowest.py --free torch > $(LOW)/constraints.txt
	$(LOW_PIP) $(TORCH) -e '.[train,onnx]' segmentation-models-pytorch
	$(LOW_PYTEST) $(addprefix tests/,$(LOW_TRAIN_TESTS))

MINUTES ?= 10
SEED ?= 0

fuzz: install  ## run mutated inputs through every command: make fuzz MINUTES=10 SEED=0
	OMP_NUM_THREADS=1 PYTHONHASHSEED=0 $(BIN)/python -m tests.fuzz --minutes $(MINUTES) --seed $(SEED)

notebook: install  ## run the notebooks from top to bottom, without Jupyter
	$(BIN)/python scripts/run_notebook.py docs/notebooks/*.ipynb

container: install  ## run the steps of the Dockerfile in an empty environment, without a container engine
	$(BIN)/python scripts/check_container.py

image:  ## build the image of the Dockerfile and ask it for its version; needs Docker
	docker build -t colocam .
	docker run --rm colocam --version --all

DOCS_STAMP := $(VENV)/.docs-installed

docs: $(DOCS_STAMP)  ## build the documentation site: site/index.html
	$(BIN)/python scripts/docs_pages.py
	$(BIN)/zensical build --strict --clean
	$(BIN)/python scripts/check_site.py

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

dist: install  ## build the source archive, the wheel for this machine and that of the ready models into dist
	rm -rf dist
	$(BIN)/python -m build
	$(if $(wildcard models/*/*.onnx),$(BIN)/python -m build --wheel --outdir dist models)
	@ls -l dist

BUILD := .venv-build
BUILD_PIP := $(BUILD)/bin/python -m pip install --quiet --disable-pip-version-check

archive:  ## build the source archive and the wheel of the ready models into dist; needs no installation
	$(PYTHON) -m venv --clear $(BUILD)
	$(BUILD_PIP) build
	$(BUILD)/bin/python -m build --sdist --outdir dist
	$(BUILD)/bin/python -m build --wheel --outdir dist models

wheels:  ## build wheels that run on other machines into dist, with cibuildwheel (on Linux it needs Docker or Podman)
	$(PYTHON) -m venv --clear $(BUILD)
	$(BUILD_PIP) build cibuildwheel==4.3.5
	$(BUILD)/bin/python -m build --sdist --outdir $(BUILD)/archive
	$(BUILD)/bin/python -m cibuildwheel --output-dir dist $$(ls $(BUILD)/archive/colocam-*.tar.gz)

TAG ?=

check-release:  ## check that version, change log, citation, tag and files of dist agree: make check-release TAG=v0.3.0
	$(PYTHON) scripts/check_release.py $(TAG)

dist-test: install  ## type the commands of the README, with the wheels of this commit in empty environments
	$(BIN)/python scripts/newcomer.py

lint: install  ## check format, lint rules and types, and the scripts of the page
	$(BIN)/ruff format --check src lab tests scripts setup.py
	$(BIN)/ruff check src lab tests scripts setup.py
	$(BIN)/mypy
	$(BIN)/oxlint --deny-warnings src/colocam/serve/page

format: install  ## format the code and apply automatic fixes
	$(BIN)/ruff format src lab tests scripts setup.py
	$(BIN)/ruff check --fix src lab tests scripts setup.py

clean:  ## remove .venv, the demo folder and what was built
	rm -rf $(VENV) $(LOW) $(BUILD) demo dist build site .cache src/colocam/native/*.so
