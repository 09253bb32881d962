# `make demo` and `make test` do all the set-up; see README.md.
.DEFAULT_GOAL := help
.PHONY: help env wheels lock demo client screenshots messages docs benchmarks test test-foreign nightly soak soak-sidecars soak-editors fuzz check static format clean

# The first Python that is new enough; `make PYTHON=... env` takes another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
# Modules are compiled once, not by each of the hundred processes that tests start.
unexport PYTHONDONTWRITEBYTECODE
# Where core/toolchain installs Rust if it is missing or too old.
export PATH := $(CURDIR)/.venv/rust/bin:$(PATH)
# A stamp for each set of packages in .venv: what `make demo` runs with, and what all other targets need.
DEMO_SET := .venv/.installed-demo
DEV_SET := .venv/.installed
# A stamp for the package itself, with the crate that is compiled into it.
PACKAGE := .venv/.installed-package
CRATE := core/Cargo.toml core/Cargo.lock $(wildcard core/src/*.rs core/src/*/*.rs core/data/*)
CARGO_TEST := cargo test --quiet --locked --manifest-path core/Cargo.toml
# LOCKED=no installs from the ranges in pyproject.toml instead of the lock files.
LOCKED ?= yes
# The package as it installs: ingest/ and mappings/ inside esdedup/, for tools that read files.
TREE := build/tree
DEMO_DATA := .esdedup/node
# 0 takes a free one, which no other program and no web page knows.
DEMO_PORT ?= 0

help:
	@echo "make demo              an Elasticsearch, a sidecar that takes the sample corpus, and what becomes of it"
	@echo "make demo ONCE=1       the same, then stop both"
	@echo "make demo INPUT=FILE   the same with your own articles (JSON Lines, a JSON array, or CSV);"
	@echo "                       OPTIONS='--text-field body' names their fields"
	@echo "make test              the test suite, on a real node"
	@echo "make test-foreign      clients in other languages, the documents, and nodes that start and die"
	@echo "make nightly           all of both with a new seed, 80 times as many random examples, every moment of a crash"
	@echo "                       and every profile, look-up, time zone and window; then the large comparisons and the soak"
	@echo "make soak MINUTES=3    articles stream in while processes and servers are killed; every root is checked"
	@echo "                       (two parts: soak-sidecars, soak-editors)"
	@echo "make fuzz MINUTES=60   odd requests to a sidecar and to the pages, of which none may fail, hang or forge"
	@echo "make check             formatter, linter, types, imports, fast tests"
	@echo "make static            the same without the tests"
	@echo "make docs              the documents as a site, in build/site"
	@echo "make benchmarks        measure what build/benchmarks.json lacks: some hours; it goes on where it was stopped"
	@echo "make screenshots       photograph the pages for the documents"
	@echo "make messages          bring the catalogue of the interface up to date with the pages"
	@echo "make client            the client for TypeScript, made anew from the description of the API (needs npm)"
	@echo "make env               only .venv, with everything installed as locked"
	@echo "make wheels            the wheel for this platform and every Python from 3.11 on, in dist"
	@echo "make lock              resolve the dependencies anew into locks/"
	@echo "make format            apply the formatter and the linter's safe fixes"

env: $(DEV_SET) $(PACKAGE)

$(DEMO_SET): NAME := demo
$(DEMO_SET): EXTRAS := node,serve,sidecar
$(DEV_SET): NAME := dev
$(DEV_SET): EXTRAS := node,serve,sidecar,bench,dev
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet

$(DEMO_SET) $(DEV_SET): pyproject.toml locks/build.txt locks/demo.txt locks/dev.txt
	@test -n "$(PYTHON)" || { echo "esdedup needs Python 3.11 or later: none found on the PATH."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments (on Debian: apt install python3-venv)."; exit 1; }
	@test -d .venv || { echo "Making .venv with $$($(PYTHON) --version)"; $(PYTHON) -m venv .venv; }
ifeq ($(LOCKED),no)
	@core/toolchain
	@echo "Installing esdedup into .venv with the versions that pyproject.toml allows, not the locked ones"
	@$(PIP) 'setuptools>=77' 'setuptools-rust>=1.12'
	@$(PIP) --no-build-isolation --editable '.[$(EXTRAS)]'
else
	@echo "Installing what esdedup needs into .venv as locks/$(NAME).txt has it; the first time takes a minute or two"
	@{ $(PIP) --require-hashes -r locks/build.txt && \
		$(PIP) --require-hashes --no-build-isolation -r locks/$(NAME).txt ; } || { \
		echo "Could not install the locked versions on $$($(BIN)/python --version). If this platform has no files for"; \
		echo "them, add LOCKED=no to take the versions that pyproject.toml allows."; exit 1; }
endif
	@touch $@

# Again after each change of the crate: it takes some 20 s, and a minute the first time.
$(PACKAGE): pyproject.toml $(CRATE) | $(if $(filter demo,$(MAKECMDGOALS)),$(DEMO_SET),$(DEV_SET))
	@core/toolchain
	@echo "Compiling esdedup with $$(cargo --version)"
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# CONTRIBUTING.md says how those for other platforms are made.
wheels: env
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# The locks hold for all platforms and for Python 3.11 and later, and name no package index.
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

# Makes the client for TypeScript anew from the description of the API, and compiles it.
client: env
	$(BIN)/python -m docs.made_from_code clients/typescript/openapi.json
	cd clients/typescript && npm ci && npm run generate && npm run build

# Photographs the pages for the documents, on a node of its own.
screenshots: env
	$(BIN)/python -m docs.screenshots

# Updates the Chinese catalogue from the messages of the pages; new messages are empty in it.
messages: env
	@mkdir -p build
	$(BIN)/python -m babel.messages.frontend --quiet extract -F pyproject.toml -k translatable --no-location --sort-output --omit-header -o build/messages.pot esdedup
	$(BIN)/pybabel --quiet update -l zh --no-fuzzy-matching --ignore-obsolete --omit-header --no-wrap -i build/messages.pot -o esdedup/web/locale/zh.po

# The site, in build/site; fails if a link leads nowhere. tests/foreign/test_site.py does the same.
docs: env
	$(BIN)/python -m docs.site

# Runs the benchmarks whose results build/benchmarks.json lacks for this code on this machine; see benchmarks/README.md.
benchmarks: env
	$(BIN)/python -m benchmarks all

# Processes that share the tests; each file goes to one of them, in the order of tests/conftest.py. One more than the
# two cores, since many tests wait for leases, servers and sidecars.
JOBS ?= 3
TEST := $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder --durations 20

# Tests of other programs: clients in other languages, the site and the code of the documents, and embedded nodes of
# their own. They mostly wait, so .ci/run runs them beside the other tests.
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

soak: soak-sidecars soak-editors

soak-sidecars: env
	$(BIN)/python -m tests.soak $(if $(MINUTES),--minutes '$(MINUTES)') $(if $(SEED),--seed '$(SEED)') $(if $(ARTICLES),--articles '$(ARTICLES)')

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
