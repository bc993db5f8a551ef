# Every target makes its own virtual environment from nothing; repeated calls only do what changed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NATIVE := pyproject.toml CMakeLists.txt $(wildcard native/*)

.PHONY: demo test torture lint format bench bench-quick clean

demo: $(VENV)/.installed
	$(BIN)/manyclass demo

test: $(VENV)/.test
	$(BIN)/python -m pytest

torture: $(VENV)/.test
	$(BIN)/python tests/faults/torture.py

lint: $(VENV)/.lint
	$(BIN)/ruff check src tests benchmarks scripts examples
	$(BIN)/ruff format --check src tests benchmarks scripts examples
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror native/*

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

bench-quick: $(VENV)/.bench
	$(BIN)/python -m benchmarks --quick

format: $(VENV)/.lint
	$(BIN)/ruff check --fix src tests benchmarks scripts examples
	$(BIN)/ruff format src tests benchmarks scripts examples
	$(BIN)/clang-format -i native/*

$(VENV)/.installed: $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[all]"
	touch $@

$(VENV)/.%: $(VENV)/.installed
	$(BIN)/python scripts/print_extra.py $* | xargs $(BIN)/python -m pip install --quiet --disable-pip-version-check pip
	touch $@

clean:
	rm -rf $(VENV) .venv-* build
