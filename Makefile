# Every target makes its own virtual environment from nothing; repeated calls only do what changed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CHECKED := .venv-sanitize
FUZZ_SECONDS ?= 600
NATIVE := pyproject.toml CMakeLists.txt $(wildcard native/*)

.PHONY: demo test sklearn-tests torture lint format bench bench-quick sanitize fuzz clean

demo: $(VENV)/.installed
	$(BIN)/manyclass demo

test: $(VENV)/.test
	$(BIN)/python -m pytest

sklearn-tests: $(VENV)/.test
	$(BIN)/python scripts/run_sklearn_tests.py

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

# The core with sanitizers of gcc, whose runtimes are loaded before Python. Leaks are not looked for: Python has its own.
library = $(shell $(CXX) -print-file-name=lib$(1).so)
ADDRESS = env LD_PRELOAD="$(call library,asan) $(call library,ubsan) $(call library,stdc++)" PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
# Other builds of the core have no sanitizers; MPI's programs do not run under them; and they take memory themselves.
MEASURE_MEMORY = data/test_bombs.py engines/test_listed_weights.py::test_the_limit_holds_where_dense_weights_would_exceed_it \
	estimators/test_wide_rows.py::test_one_large_index_costs_no_memory
WITH_KERNELS = tests/native tests/solvers tests/common tests/problems tests/data tests/model tests/engines tests/estimators tests/fuzz
LEFT_OUT = --deselect tests/common/test_invariance.py::test_every_build_reaches_the_same_optimum \
	--ignore tests/engines/test_mpi.py --ignore tests/engines/test_two_hosts.py \
	$(addprefix --deselect tests/,$(MEASURE_MEMORY))

sanitize: $(CHECKED)/.installed
	$(ADDRESS) $(CHECKED)/bin/python scripts/check_sanitizers.py address undefined
	$(ADDRESS) $(CHECKED)/bin/python -m pytest $(LEFT_OUT) $(WITH_KERNELS)

fuzz: $(CHECKED)/.installed
	$(CHECKED)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: atheris || true
	$(ADDRESS) $(CHECKED)/bin/python scripts/check_sanitizers.py address undefined
	$(ADDRESS) $(CHECKED)/bin/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS) $(FUZZ_READERS)

$(CHECKED)/.installed: $(NATIVE) tests/native/faults.cpp tests/fuzz/native_coverage.cpp
	test -x $(CHECKED)/bin/python || $(PYTHON) -m venv $(CHECKED)
	$(CHECKED)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[all]" \
		--config-settings=build-dir=build/sanitize --config-settings=cmake.define.MANYCLASS_BUILDS= \
		--config-settings=cmake.define.MANYCLASS_SANITIZE=address,undefined,float-cast-overflow
	$(CHECKED)/bin/python scripts/print_extra.py test | xargs $(CHECKED)/bin/python -m pip install --quiet --disable-pip-version-check pip
	touch $@

$(VENV)/.installed: $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[all]"
	touch $@

$(VENV)/.%: $(VENV)/.installed
	$(BIN)/python scripts/print_extra.py $* | xargs $(BIN)/python -m pip install --quiet --disable-pip-version-check pip
	touch $@

clean:
	rm -rf $(VENV) .venv-* build
