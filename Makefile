# `make demo` and `make test` set up everything that they need; see README.md.
.DEFAULT_GOAL := help
.PHONY: help env wheels lock demo client screenshots messages docs benchmarks test test-foreign nightly soak soak-sidecars soak-editors soak-cluster fuzz check static format clean

# The first Python that is new enough; `make PYTHON=... env` uses another one.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
# Keep compiled modules, so that the hundred processes that tests start do not compile them again.
unexport PYTHONDONTWRITEBYTECODE
# Where core/toolchain installs Rust if it is missing or too old.
export PATH := $(CURDIR)/.venv/rust/bin:$(PATH)
# Stamps for the sets of packages installed in .venv: for `make demo`, and for all other targets.
DEMO_SET := .venv/.installed-demo
DEV_SET := .venv/.installed
# A stamp for the package itself, including the crate that is compiled into it.
PACKAGE := .venv/.installed-package
CRATE := core/Cargo.toml core/Cargo.lock $(wildcard core/src/*.rs core/src/*/*.rs core/data/*)
CARGO_TEST := cargo test --quiet --locked --manifest-path core/Cargo.toml
# LOCKED=no installs the versions that pyproject.toml allows instead of those in the lock files.
LOCKED ?= yes
# The package as it is installed, with ingest/ and mappings/ inside esdedup/, for tools that read source files.
TREE := build/tree
DEMO_DATA := .esdedup/node
# 0 picks a free port, which other programs and web pages cannot guess.
DEMO_PORT ?= 0

help:
	@echo "make demo              start Elasticsearch and a sidecar, index the sample corpus, and serve the pages"
	@echo "make demo ONCE=1       the same without pages, then stop Elasticsearch and the sidecar"
	@echo "make demo INPUT=FILE   the same with your own articles (JSON Lines, a JSON array, or CSV);"
	@echo "                       OPTIONS='--text-field body' names their fields"
	@echo "make test              run the test suite, on a real node"
	@echo "make test-foreign      test clients in other languages, the documents, and nodes that start and crash"
	@echo "make nightly           run both suites with a new seed, 80 times as many examples, a crash at every step, and"
	@echo "                       every profile, look-up, time zone and window; then large comparisons and the soak test;"
	@echo "                       sidecars behind HAProxy too, if it is installed (apt install haproxy)"
	@echo "make soak MINUTES=3    feed articles while processes and servers are killed, and check every root"
	@echo "                       (three parts: soak-sidecars, soak-editors, soak-cluster)"
	@echo "make fuzz MINUTES=60   send odd requests to a sidecar and to the pages; none may fail, hang or forge a root"
	@echo "make check             run the formatter, the linter, the checks of types and imports, and fast tests"
	@echo "make static            make check, but without the tests"
	@echo "make docs              build the documents as a site, in build/site"
	@echo "make benchmarks        measure what is missing from build/benchmarks.json: takes hours, resumes if interrupted"
	@echo "make screenshots       take screenshots of the pages for the documents"
	@echo "make messages          update the catalogue of translations from the pages"
	@echo "make client            regenerate the TypeScript client from the description of the API (needs npm)"
	@echo "make env               only create .venv, with the locked versions"
	@echo "make wheels            build the wheel for this platform and Python 3.11 or later, in dist"
	@echo "make lock              resolve the dependencies again, into locks/"
	@echo "make format            apply the formatter and the linter's safe fixes"

env: $(DEV_SET) $(PACKAGE)

$(DEMO_SET): NAME := demo
$(DEMO_SET): EXTRAS := node,serve,sidecar
$(DEV_SET): NAME := dev
$(DEV_SET): EXTRAS := node,parquet,serve,sidecar,bench,dev
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet

$(DEMO_SET) $(DEV_SET): pyproject.toml locks/build.txt locks/demo.txt locks/dev.txt
	@test -n "$(PYTHON)" || { echo "esdedup needs Python 3.11 or later: none found on the PATH."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot create virtual environments (on Debian: apt install python3-venv)."; exit 1; }
	@test -d .venv || { echo "Creating .venv with $$($(PYTHON) --version)"; $(PYTHON) -m venv .venv; }
ifeq ($(LOCKED),no)
	@core/toolchain
	@echo "Installing esdedup into .venv with the versions that pyproject.toml allows, not the locked ones"
	@$(PIP) 'setuptools>=77' 'setuptools-rust>=1.12'
	@$(PIP) --no-build-isolation --editable '.[$(EXTRAS)]'
else
	@echo "Installing the versions in locks/$(NAME).txt into .venv; the first time takes a minute or two"
	@{ $(PIP) --require-hashes -r locks/build.txt && \
		$(PIP) --require-hashes --no-build-isolation -r locks/$(NAME).txt ; } || { \
		echo "Could not install the locked versions on $$($(BIN)/python --version). If there are no files for this"; \
		echo "platform, add LOCKED=no to install any versions that pyproject.toml allows."; exit 1; }
endif
	@touch $@

# This is repeated after each change of the crate. It takes about 20 s, and a minute the first time.
$(PACKAGE): pyproject.toml $(CRATE) | $(if $(filter demo,$(MAKECMDGOALS)),$(DEMO_SET),$(DEV_SET))
	@core/toolchain
	@echo "Compiling esdedup with $$(cargo --version)"
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# CONTRIBUTING.md describes how wheels for other platforms are built.
wheels: env
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# The lock files are valid for all platforms and for Python 3.11 and later, and name no package index.
UV := .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-emit-index-url --custom-compile-command 'make lock' --upgrade

lock:
	@test -d .venv-lock || $(PYTHON) -m venv .venv-lock
	@PIP_DISABLE_PIP_VERSION_CHECK=1 .venv-lock/bin/python -m pip install --quiet 'uv>=0.13'
	$(UV) --all-extras pyproject.toml -o locks/dev.txt
	$(UV) --extra node --extra serve --extra sidecar --constraints locks/dev.txt pyproject.toml -o locks/demo.txt
	$(UV) --extra serve --extra sidecar --constraints locks/dev.txt pyproject.toml -o locks/sidecar.txt
	printf 'setuptools>=77\nsetuptools-rust>=1.12\n' | $(UV) --constraints locks/dev.txt - -o locks/build.txt

demo: $(DEMO_SET) $(PACKAGE)
	@$(BIN)/esdedup demo --data $(DEMO_DATA) --port $(DEMO_PORT) $(if $(INPUT),--input '$(INPUT)') $(if $(ONCE),--once) $(OPTIONS)

# Regenerates the TypeScript client from the description of the API, and compiles it.
client: env
	$(BIN)/python -m docs.made_from_code clients/typescript/openapi.json
	cd clients/typescript && npm ci && npm run generate && npm run build

# Takes screenshots of the pages for the documents, with a separate node.
screenshots: env
	$(BIN)/python -m docs.screenshots

# Updates the Chinese catalogue from the messages of the pages; new messages have empty translations.
messages: env
	@mkdir -p build
	$(BIN)/python -m babel.messages.frontend --quiet extract -F pyproject.toml -k translatable --no-location --sort-output --omit-header -o build/messages.pot esdedup
	$(BIN)/pybabel --quiet update -l zh --no-fuzzy-matching --ignore-obsolete --omit-header --no-wrap -i build/messages.pot -o esdedup/web/locale/zh.po

# Builds the site in build/site; fails if a link is broken. tests/foreign/test_site.py does the same.
docs: env
	$(BIN)/python -m docs.site

# Runs the benchmarks for which build/benchmarks.json has no results of this code and machine; see benchmarks/README.md.
benchmarks: env
	$(BIN)/python -m benchmarks all

# The number of processes that run tests; each takes whole files, in the order of tests/conftest.py. One more than the
# two cores of CI, since many tests wait for leases, servers and sidecars.
JOBS ?= 3
TEST := $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder --durations 20

# Tests with other programs: clients in other languages, the site and the code in the documents, and separate embedded
# nodes. They mostly wait, so .ci/run runs them in parallel with the other tests.
FOREIGN := tests/foreign
TEST_FOREIGN := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --durations 10 $(FOREIGN)

test: env
	$(CARGO_TEST)
	$(TEST) --ignore $(FOREIGN) $(PYTEST_ARGS)

test-foreign: env
	$(TEST_FOREIGN) $(PYTEST_ARGS)

nightly: env
	ESDEDUP_TEST_EFFORT=80 $(TEST) --timeout 3600 $(PYTEST_ARGS)
	$(BIN)/python -m tests.nightly.large memory 10_000_000
	$(BIN)/python -m tests.nightly.large elastic 1_000_000
	$(BIN)/python -m tests.nightly.day
	$(BIN)/python -m tests.nightly.extras
	$(MAKE) soak MINUTES=$(or $(MINUTES),30) SEED=$(or $(SEED),$(shell date +%s))

soak: soak-sidecars soak-editors soak-cluster

soak-sidecars: env
	$(BIN)/python -m tests.soak $(if $(MINUTES),--minutes '$(MINUTES)') $(if $(SEED),--seed '$(SEED)') $(if $(ARTICLES),--articles '$(ARTICLES)')

# FOREST_SHARDS=3 creates a forest of three shards.
soak-cluster: env
	$(BIN)/python -m tests.soak --nodes 3 --articles '$(or $(ARTICLES),100_000)' $(if $(FOREST_SHARDS),--forest-shards '$(FOREST_SHARDS)') $(if $(MINUTES),--minutes '$(MINUTES)') $(if $(SEED),--seed '$(SEED)')

soak-editors: env
	$(BIN)/python -m tests.soak.editors $(if $(MINUTES),--minutes '$(MINUTES)') $(if $(SEED),--seed '$(SEED)')

fuzz: env
	$(BIN)/python -m tests.soak.fuzz $(if $(MINUTES),--minutes '$(MINUTES)') $(if $(SEED),--seed '$(SEED)') $(if $(VERSION),--version '$(VERSION)')

check: static
	ESDEDUP_TEST_EFFORT=0.4 $(BIN)/python -m pytest -q --numprocesses $(JOBS) tests/unit tests/contract -m "not node and not slow" $(PYTEST_ARGS)

static: env $(TREE)
	cargo fmt --check --manifest-path core/Cargo.toml
	cargo clippy --quiet --locked --manifest-path core/Cargo.toml --all-targets --features python -- -D warnings
	cargo doc --quiet --locked --manifest-path core/Cargo.toml --no-deps --document-private-items --features python
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	MYPYPATH=$(TREE) $(BIN)/mypy
	cd $(TREE) && "$(CURDIR)/$(BIN)/lint-imports" --no-logo --config "$(CURDIR)/pyproject.toml"
	$(BIN)/python -m tests.budget

format: env
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	cargo fmt --manifest-path core/Cargo.toml

$(TREE): $(wildcard esdedup/*) ingest mappings
	@rm -rf $@ && mkdir -p $@/esdedup
	@for each in $(filter-out esdedup/__pycache__,$(wildcard esdedup/*)) ingest mappings; do \
		ln -s "$(CURDIR)/$$each" $@/esdedup/; done
	@touch $@

clean:
	rm -rf .venv .venv-lock build dist core/target esdedup/_core.*.so .esdedup .mypy_cache .ruff_cache .pytest_cache .hypothesis
