# Everything sets itself up: only python3 (3.11 or newer, with venv) and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.ready-dev
BROWSER := $(VENV)/.browser

.PHONY: demo test lint mutation fuzz bench docs pictures reproduce clean help

help:
	@echo "make demo   the whole road on a made-up hospital (results in demo/)"
	@echo "make test   all tests"
	@echo "make lint   formatting, types, layers, no function too large"
	@echo "make mutation  mistakes put into the code, and whether a test notices"
	@echo "make fuzz   random releases for ten minutes, judged by a checker that is not ours"
	@echo "make bench  every measured claim (writes benchmarks/out/)"
	@echo "make docs   regenerate the pages that are written by programs"
	@echo "make reproduce  the papers' experiments in full (writes docs/reproduction/; half an hour, goes on where it stopped)"
	@echo "make pictures  the pictures of docs/report.md, drawn by Chromium"

demo: $(READY)
	@$(BIN)/shoal demo

test: $(DEV) $(BROWSER)
	$(BIN)/python -m pytest -n 2 --dist loadfile -q

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.complexity

mutation: $(DEV)
	$(BIN)/python -m tools.mutation

fuzz: $(DEV)
	$(BIN)/python -m tools.fuzz --seconds 600

bench: $(DEV)
	$(BIN)/python -m benchmarks

docs: $(DEV)
	$(BIN)/python -m docs.generate

reproduce: $(DEV)
	$(BIN)/shoal reproduce all --out docs/reproduction

pictures: $(DEV) $(BROWSER)
	$(BIN)/python -m docs.pictures

# Chromium, for the tests that open reports: found or installed once; without it they are skipped and say why.
$(BROWSER): $(DEV)
	@$(BIN)/python -m tools.browser || true
	@touch $@

$(READY): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up the environment (once)…"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(DEV): $(READY) pyproject.toml tests/peers.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@# Other tools, whose files are judged; where they cannot be had, these tests say so and are skipped.
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/peers.txt
	@touch $@

clean:
	rm -rf $(VENV) demo benchmarks/out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
