# Each target sets up what it needs on a machine with only Python 3.11+ and pip.
#   make demo       the whole pipeline over the bundled sample week (core, about 1.2 GB)
#   make test       all tests and the linters, with the [gpu] extra (about 7 GB)
#   make test-core  the tests that need no torch, and the linters
#   make bench      speed and memory, as ratios against a stated peer
#   make chaos      the long kill-and-resume tests

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
CORE := .venv
FULL := .venv-gpu
PIP_FLAGS := --quiet --disable-pip-version-check
JOBS ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK = 1

# used by the images in docker/
install-core: $(CORE)/.core
install-gpu: $(FULL)/.full

.PHONY: demo test test-core lint bench chaos clean install-core install-gpu

demo: $(CORE)/.core
	@$(CORE)/bin/nest demo

test: $(FULL)/.full
	@$(MAKE) --no-print-directory lint BIN=$(FULL)/bin
	$(FULL)/bin/python -m pytest -q -n $(JOBS) --dist loadfile tests

test-core: $(CORE)/.dev
	@$(MAKE) --no-print-directory lint BIN=$(CORE)/bin
	$(CORE)/bin/python -m pytest -q -n $(JOBS) --dist loadfile -m "not gpu_extra" tests

BIN ?= $(CORE)/bin
lint: $(if $(filter $(CORE)/bin,$(BIN)),$(CORE)/.dev)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(FULL)/.full
	$(FULL)/bin/python -m bench

chaos: $(FULL)/.full
	NEST_CHAOS=50 $(FULL)/bin/python -m pytest -q -m chaos tests/flows

clean:
	rm -rf $(CORE) $(FULL) nest-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(CORE)/.core: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed"; exit 1; }
	@echo "setting up $(CORE) (core, about 1.2 GB) ..."
	@$(PYTHON) -m venv $(CORE)
	@$(CORE)/bin/python -m pip install $(PIP_FLAGS) --upgrade pip
	@$(CORE)/bin/python -m pip install $(PIP_FLAGS) -e .
	@touch $@

$(CORE)/.dev: $(CORE)/.core
	@$(CORE)/bin/python -m pip install $(PIP_FLAGS) -e '.[dask,dev]'
	@touch $@

# supervision, which groundingdino-py needs, brings opencv-python; the headless build is put over it again, since
# the other one does not start on machines without a screen's libraries.
$(FULL)/.full: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed"; exit 1; }
	@echo "setting up $(FULL) (with torch, about 7 GB) ..."
	@$(PYTHON) -m venv $(FULL)
	@$(FULL)/bin/python -m pip install $(PIP_FLAGS) --upgrade pip
	@$(FULL)/bin/python -m pip install $(PIP_FLAGS) -e '.[gpu,dask,dev]'
	@$(FULL)/bin/python -m pip install $(PIP_FLAGS) --force-reinstall --no-deps opencv-python-headless
	@touch $@
