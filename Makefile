# The whole project by three words: make run, make serve, make test.
# Only python3 (3.11 or newer) and make are needed; everything else goes into .venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PORT ?= 8000
export NO_MKDOCS_2_WARNING := 1

INPUTS := pyproject.toml requirements.lock
BASE := $(VENV)/.installed-base
TEST := $(VENV)/.installed-test
# Where a GPU is present, `make run` also installs what measuring needs (cuBLAS, NVML).
EXTRA := $(if $(shell command -v nvidia-smi 2>/dev/null),[gpu],)

.PHONY: run serve test lint check clean

# Where a kernel failed (exit code 1) the rest of it is still worth a site.
run: $(BASE)
	@echo $(PY) scripts/run_all.py $(ARGS); $(PY) scripts/run_all.py $(ARGS); code=$$?; \
	  [ $$code -le 1 ] || exit $$code; $(PY) -m kernelbook.site build && exit $$code

serve: $(BASE)
	@echo "Chinese: http://127.0.0.1:$(PORT)/  English: http://127.0.0.1:$(PORT)/en/"
	$(PY) -m kernelbook.site serve --port $(PORT)

test: $(TEST)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PY) scripts/run_all.py --check
	$(PY) -m kernelbook.site check
	$(BIN)/pytest -n auto $(ARGS)

lint: $(TEST)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

check: $(BASE)
	$(PY) scripts/run_all.py --check
	$(PY) -m kernelbook.site check

clean:
	rm -rf $(VENV) site .cache

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $(PYTHON) is older than 3.11; say which to use with make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
	  { echo "make: $(PYTHON) lacks the venv module (Debian, Ubuntu: apt install python3-venv)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BASE): $(INPUTS) | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.$(EXTRA)'
	@touch $@

$(TEST): $(BASE)
	$(PY) -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[test]'
	@touch $@
