# Every target creates the virtual environment that it needs; repeated calls only redo what has changed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CHECKED := .venv-sanitize
RACES := .venv-sanitize-threads
FUZZ_SECONDS ?= 600
SOURCES := $(shell find native -name '*.[ch]pp')
NATIVE := pyproject.toml CMakeLists.txt $(SOURCES)
PIP := -m pip install --quiet --disable-pip-version-check

# Only the best build for this machine is compiled; `make test-all` and wheels have all of them. The build folder is not
# that of `pip install .`, whose cache would otherwise keep this choice.
HERE := $(if $(shell grep -m1 avx512vl /proc/cpuinfo),avx512,$(if $(shell grep -m1 avx2 /proc/cpuinfo),avx2,baseline))
ALL := $(if $(filter x86_64,$(shell uname -m)),baseline;avx2;avx512,baseline)
settings = --config-settings=build-dir=build/$(1) --config-settings=cmake.define.MANYCLASS_BUILDS="$(2)"
core = -e ".[all]" $(settings)

.NOTPARALLEL:
.PHONY: demo test test-all sklearn-tests torture lint format bench bench-quick sanitize sanitize-threads odr fuzz clean

demo: $(VENV)/.installed
	$(BIN)/manyclass demo

# Tests of one xdist_group share a worker, so that tests that start mpirun or measure memory do not disturb each other.
PYTEST = $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadgroup

test: $(VENV)/.test
	$(PYTEST) -m "not slow"

test-all: $(VENV)/.all-builds $(VENV)/.test
	$(PYTEST)

sklearn-tests: $(VENV)/.test
	$(BIN)/python scripts/run_sklearn_tests.py

torture: $(VENV)/.test
	$(BIN)/python tests/faults/torture.py

lint: $(VENV)/.lint
	$(BIN)/ruff check src tests benchmarks scripts examples
	$(BIN)/ruff format --check src tests benchmarks scripts examples
	cp build/here/core.pyi src/manyclass/_native/
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(SOURCES)

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

bench-quick: $(VENV)/.bench
	$(BIN)/python -m benchmarks --quick

format: $(VENV)/.lint
	$(BIN)/ruff check --fix src tests benchmarks scripts examples
	$(BIN)/ruff format src tests benchmarks scripts examples
	$(BIN)/clang-format -i $(SOURCES)

# The core with gcc's sanitizers, whose runtimes are loaded before Python. Leaks are ignored: Python has its own.
library = $(shell $(CXX) -print-file-name=lib$(1).so)
ADDRESS = env LD_PRELOAD="$(call library,asan) $(call library,ubsan) $(call library,stdc++)" PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
# Left out: other builds of the core (no sanitizers), MPI (does not run under them), limits of memory (which they need more of).
MEASURE_MEMORY = data/test_bombs.py engines/test_listed_weights.py::test_the_limit_holds_where_dense_weights_would_exceed_it \
	estimators/test_wide_rows.py::test_one_large_index_costs_no_memory
WITH_KERNELS = tests/native tests/solvers tests/common tests/problems tests/data tests/model tests/engines tests/estimators tests/fuzz
LEFT_OUT = --deselect tests/common/test_invariance.py::test_every_build_reaches_the_same_optimum \
	--ignore tests/engines/test_mpi.py --ignore tests/engines/test_two_hosts.py \
	$(addprefix --deselect tests/,$(MEASURE_MEMORY))

sanitize: $(CHECKED)/.installed
	$(ADDRESS) $(CHECKED)/bin/python scripts/check_sanitizers.py address undefined
	$(ADDRESS) $(CHECKED)/bin/python -m pytest $(LEFT_OUT) $(WITH_KERNELS)

# The runtime of gcc 12 needs addresses that are not randomised. It watches only our core, lets processes with
# several threads fork (as the tests do), and reports every race of a run; a single one fails it.
THREADS = env LD_PRELOAD="$(call library,tsan) $(call library,stdc++)" \
	TSAN_OPTIONS=ignore_noninstrumented_modules=1:die_after_fork=0:second_deadlock_stack=1 setarch -R

sanitize-threads: $(RACES)/.installed
	$(THREADS) $(RACES)/bin/python scripts/check_sanitizers.py thread openmp
	$(THREADS) $(RACES)/bin/python -m pytest $(LEFT_OUT) -m "not slow" tests/native tests/solvers tests/common

# Links all parts at once and compares their types: two different definitions of one name are an error.
odr: $(VENV)/.lint
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps . -w build/odr-wheel $(call settings,odr,baseline) \
		--config-settings=cmake.define.CMAKE_CXX_FLAGS="-flto=auto -Werror=odr -Werror=lto-type-mismatch"

fuzz: $(CHECKED)/.installed
	$(CHECKED)/bin/python $(PIP) --only-binary :all: atheris || true
	$(ADDRESS) $(CHECKED)/bin/python scripts/check_sanitizers.py address undefined
	$(ADDRESS) $(CHECKED)/bin/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS) $(FUZZ_READERS)

$(CHECKED)/.installed: $(NATIVE) tests/native/faults.cpp tests/fuzz/native_coverage.cpp
	test -x $(CHECKED)/bin/python || $(PYTHON) -m venv $(CHECKED)
	$(CHECKED)/bin/python $(PIP) $(call core,sanitize,baseline) \
		--config-settings=cmake.define.MANYCLASS_SANITIZE=address,undefined,float-cast-overflow
	$(CHECKED)/bin/python scripts/print_extra.py test | xargs $(CHECKED)/bin/python $(PIP) pip
	touch $@

$(RACES)/.installed: $(NATIVE) tests/native/faults.cpp tests/native/openmp_threads.cpp
	test -x $(RACES)/bin/python || $(PYTHON) -m venv $(RACES)
	$(RACES)/bin/python $(PIP) $(call core,sanitize-threads,baseline) --config-settings=cmake.define.MANYCLASS_SANITIZE=thread
	$(RACES)/bin/python scripts/print_extra.py test | xargs $(RACES)/bin/python $(PIP) pip
	touch $@

$(VENV)/.installed: $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) $(call core,here,$(HERE))
	touch $@

$(VENV)/.all-builds: $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) $(call core,here,$(ALL))
	touch $(VENV)/.installed $@

$(VENV)/.%: $(VENV)/.installed
	$(BIN)/python scripts/print_extra.py $* | xargs $(BIN)/python $(PIP) pip
	touch $@

clean:
	rm -rf $(VENV) .venv-* build
