# Every target works on a clean clone with only Python 3.11 or later; PYTHON=... names another one.
# Rules: works with GNU make 3.81 (macOS); nothing is installed outside .venv; the locks' hashes decide what is.

PYTHON ?= python3
VENV   := .venv
SMALL  := $(VENV)/small# of the first commands, which need a few packages
ENGINE := $(VENV)/engine
OLDEST := $(VENV)/oldest
ASYNC  := $(VENV)/async
RIVALS := $(VENV)/rivals
LITELLM := $(VENV)/litellm
CDK    := $(VENV)/cdk
LAMBDA := $(VENV)/313
BIN    := $(VENV)/bin

# uv, where it is on PATH, takes seconds where pip takes a minute or more. Both install the same locks by their hashes.
UV     := $(shell command -v uv 2> /dev/null)
BY      = $$(grep -c '^[a-z]' $<) packages of $< by $(if $(UV),uv (seconds),pip ($(1)))
# Since 22.3 pip installs into other environments, too. Those then need no pip of their own, which takes seconds to make.
REACHES = $(shell $(PYTHON) -c 'import sys, pip; sys.exit([*map(int, pip.__version__.split(".")[:2])] < [22, 3])' 2> /dev/null && echo yes)
BARE    = $(if $(or $(UV),$(REACHES)),--without-pip)
PIP     = $(if $(REACHES),$(PYTHON) -m pip --python $(1),$(1) -m pip)
# Of a Python and of what is to be installed for it.
INSTALL = $(if $(UV),"$(UV)" pip install --python $(1),$(PIP) install --disable-pip-version-check) --quiet --require-hashes --no-deps --no-compile $(2)

.DEFAULT_GOAL := help
.PHONY: help dev engine demo demo-web browser test check docs api bench litellm compare simulate explore mistakes \
  mutants dist newest model contract torture package preflight deploy remove e2e smoke

help:
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

dev: $(VENV)/.made $(ENGINE)/.made ## make .venv from the locks; you need not: every other target makes what it needs
	@echo "ready: source $(BIN)/activate"

engine: first ## run a DynamoDB on this computer with a table in it, until Ctrl-C: docs/first-hour.md
	@$(SMALL)/bin/python -m lab.engines

demo: DAY = $(if $(FULL)$(EVENTS),,--limit 300)
demo: first ## play a flash sale, and 300 events in two Regions; FULL=1: a whole day's; EVENTS=file.csv: yours; CAPTURE=file keeps what it prints
ifdef CAPTURE
	@echo "$$ make demo$(if $(FULL), FULL=1)$(if $(ARGS), ARGS='$(ARGS)')" > "$(CAPTURE)"
	@COLUMNS=80 NO_COLOR=1 $(SMALL)/bin/python -m lab.run demo $(DAY) $(ARGS) >> "$(CAPTURE)" || { code=$$?; cat "$(CAPTURE)"; exit $$code; }
else
	@$(SMALL)/bin/python -m lab.run demo $(if $(EVENTS),--events "$(EVENTS)") $(DAY) $(ARGS)
endif

demo-web: $(SMALL)/.made ## serve the live page on 127.0.0.1: watch and disturb two simulated Regions; PORT=8090
	@$(SMALL)/bin/python -m lab.live $(if $(PORT),--port "$(PORT)") $(ARGS)

browser: $(VENV)/.made ## test the live page, the console, /try-it and the docs in a headless browser (chromium and chromium-driver), and write its moving picture: PICTURE=file
	@$(BIN)/python -m pytest -q tests/browser $(ARGS)
	@$(if $(PICTURE),cp build/browser/live.webp "$(PICTURE)")

PYTEST := $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4
NONE   := 5# how pytest ends where it found no test: right of either half where ARGS chooses some, and wrong of both
test: $(VENV)/.made $(ENGINE)/.made $(ASYNC)/.made ## run the tests, first those that need aiobotocore; ARGS="-k fold" chooses some, COV=--cov measures coverage
	@PYTHONPATH=$(ASYNC) $(PYTEST) tests/aio $(ARGS); awaited=$$?; \
	case $$awaited in 0 $(if $(ARGS),| $(NONE)));; *) exit $$awaited;; esac; \
	$(PYTEST) $(COV) $(ARGS); others=$$?; \
	case $$others in $(if $(ARGS),$(NONE),none)) exit $$awaited;; *) exit $$others;; esac

check: docs ## check lint, format and types, also of the pages' Python, and build the pages
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy
	@$(BIN)/python -m pytest -q tests/docs/test_types.py

docs: $(VENV)/.made ## write docs/openapi.json from the routes, and build/docs/index.html with all pages and the reference
	@$(BIN)/python -m service.api.openapi
	@mkdir -p build
	@# not --quiet: MkDocs would count no warning then, and pass dead links in spite of --strict
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict > build/docs.txt 2>&1 || { cat build/docs.txt; exit 1; }
	@echo "build/docs: $$(find build/docs -name "*.html" | wc -l) pages. To read and search them: python3 -m http.server -b 127.0.0.1 -d build/docs 8000, then http://127.0.0.1:8000"

api: ARGS ?= --memory
api: $(SMALL)/.made ## run the HTTP API on 127.0.0.1:8080, in memory; ARGS= uses the table of the LEDGER_* environment
	@$(SMALL)/bin/python -m service.api.local $(ARGS)

bench: $(VENV)/.made $(ENGINE)/.made $(ASYNC)/.made ## measure costs, each beside its goal, in some twelve minutes; writes docs/bench.txt; ARGS=--small
	@$(BIN)/python -m lab.measure.bench $(ARGS)

CUSTOMERS ?= 8
litellm: $(LITELLM)/.made ## check integrations/litellm: types, tests with the real package and proxy, budgets under load; CUSTOMERS=250
	@cd integrations/litellm && "$(CURDIR)/$(BIN)/python" -m mypy
	@cd integrations/litellm && PYTHONPATH="$(CURDIR)/$(LITELLM)" "$(CURDIR)/$(BIN)/python" -m pytest -q $(ARGS)
	@cd integrations/litellm && PYTHONPATH="$(CURDIR)/$(LITELLM)" "$(CURDIR)/$(BIN)/python" -m budgets_lab --customers "$(CUSTOMERS)"

compare: $(VENV)/.made $(ENGINE)/.made $(RIVALS)/.made ## measure every published way of counting; writes docs/comparison.md; EVENTS=file.csv, ARGS=--small
	@$(BIN)/python -m lab.engines.dynamodb_local || true # without it, the demo's engine
	@$(BIN)/python -m lab.measure.compare $(if $(EVENTS),"$(EVENTS)") $(ARGS)

simulate: $(SMALL)/.made ## play random histories of the code, each by its seed, with faults; SEEDS=100000 for more
	@$(SMALL)/bin/python -m lab.histories $(if $(SEEDS),--seeds "$(SEEDS)") $(ARGS)

explore: $(VENV)/.made ## play every order of the steps of a few processes, with crashes; then show how the obvious design breaks
	@$(BIN)/python -m lab.histories.explore $(ARGS)

mistakes: $(VENV)/.made ## plant mistakes in a copy of the code, and see whether the histories find each; ARGS="'the naive merge'"
	@$(BIN)/python -m lab.histories.mistakes $(ARGS)

mutants: $(VENV)/.made $(ENGINE)/.made ## change lines of the code, chosen by a seed: the tests must notice; ARGS="--sample 9 compactor/fold.py"
	@$(BIN)/python -m lab.mutants $(ARGS)

WHEEL     := build/wheel
ALIAS     := tests/wheel/alias# `ledger` is `exact_counter.ledger` there
ON_WHEEL  := -P -m pytest -q -p on_wheel -o pythonpath=
PYTHON313 ?= python3.13 $(wildcard $(HOME)/.pyenv/versions/3.13.*/bin/python)
dist: $(VENV)/.made $(OLDEST)/.made $(ENGINE)/.made ## build wheel and sdist, check them, and test the wheel with the oldest packages and on Lambda's Python; PYTHON313=...
	@rm -rf dist $(WHEEL)
	@mkdir -p build
	@$(BIN)/python -m build --no-isolation --outdir dist . > build/dist.txt 2>&1 || { cat build/dist.txt; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(WHEEL) dist/*.whl
	@rm -rf exact_counter.egg-info # of the build: pytest would find the plugin in the clone, too
	@PYTHONPATH="$(CURDIR)/$(WHEEL):$(CURDIR)/$(ALIAS):$(CURDIR)/$(OLDEST)" $(BIN)/python -c 'import ledger, exact_counter.ledger as l; assert l is ledger; assert "/$(WHEEL)/" in l.__file__, l.__file__'
	@PYTHONPATH="$(CURDIR)/$(WHEEL):$(CURDIR)/$(ALIAS):$(CURDIR)/$(OLDEST)" $(BIN)/python $(ON_WHEEL) \
	  tests/ledger tests/reader tests/ledgerctl/test_app.py tests/ledgerctl/test_failures.py $(ARGS)
	@for python in $(PYTHON313); do "$$python" -c "" 2> /dev/null || continue; \
	  $(MAKE) --no-print-directory lambda PYTHON313="$$python" && exit; exit 1; done; \
	  echo "NOT RUN on Python 3.13: none that starts is on PATH or among pyenv's versions. PYTHON313=... names one."; \
	  $(if $(CI),exit 1)
	@$(BIN)/python -m pytest -q tests/wheel $(ARGS)
	@ls dist/*

.PHONY: lambda
lambda: $(ENGINE)/.made
	@$(MAKE) --no-print-directory VENV=$(LAMBDA) PYTHON="$(PYTHON313)" $(LAMBDA)/.made
	@PYTHONPATH="$(CURDIR)/$(WHEEL):$(CURDIR)/$(ALIAS)" LEDGER_ENGINE="$(CURDIR)/$(ENGINE)/bin/ministack" $(LAMBDA)/bin/python $(ON_WHEEL) \
	  tests/ledger tests/reader tests/compactor tests/service tests/infra $(ARGS)

PYTHON314 ?= python3.14 $(wildcard $(HOME)/.pyenv/versions/3.14.*/bin/python)
newest: $(VENV)/.made $(ENGINE)/.made ## test with the newest of all dependencies, without locks, also on Python 3.14; ARGS="tests/reader", PYTHON314=...
	@$(BIN)/python -m lab.newest $(ARGS)
	@for python in $(PYTHON314); do "$$python" -c "" 2> /dev/null || continue; \
	  $(BIN)/python -m lab.newest --python "$$python" $(ARGS) && exit; exit 1; done; \
	  echo "NOT RUN on Python 3.14: none that starts is on PATH or among pyenv's versions. PYTHON314=... names one."

model: $(VENV)/.made ## check the TLA+ model (needs Java and Maven): half an hour; ARGS=one-delta: one configuration
	@$(BIN)/python -m lab.spec.check $(ARGS)

contract: $(VENV)/.made $(ENGINE)/.made ## run the same tests on four kinds of table, DynamoDB Local too (needs a JDK and Maven)
	@$(BIN)/python -m lab.engines.dynamodb_local
	@$(BIN)/python -m pytest -q tests/contract $(ARGS)

torture: $(VENV)/.made $(ENGINE)/.made ## kill processes and spoil requests on a real engine; ARGS="--operations 100000"
	@$(BIN)/python -m lab.run torture $(ARGS)

# STAGE, REGIONS (the first one has the table's stack), NAME and PARAMS="name=value …" of serverless.yml.
STAGE   ?= dev
REGIONS ?= eu-west-1 us-east-1
NAME    ?= ledger
export PARAMS PYTHON313
UPDATES := build/package/*/*update-stack.json
DEPLOY  := $(BIN)/python -m infra.deploy
TO       = --stage "$(STAGE)" --regions "$(REGIONS)" --name "$(NAME)" $(ARGS)

package: $(VENV)/.made node_modules/.made ## build the zip and all templates and check them; does not call AWS
	@rm -rf build/package
	@$(DEPLOY) package $(TO)
	@# W3005: the framework says that a function needs its role twice, by reference and by DependsOn
	@$(BIN)/cfn-lint --regions $(REGIONS) --ignore-checks W3005 -- build/package/*.json $(UPDATES)
	@LEDGER_PACKAGED="$$(echo $(UPDATES) | tr ' ' :)" $(BIN)/python -m pytest -q tests/infra

preflight: $(VENV)/.made node_modules/.made ## check whether a deployment would work, and change nothing: STAGE=, REGIONS=, PARAMS=
	@$(DEPLOY) preflight $(TO)

deploy: $(VENV)/.made node_modules/.made ## deploy to AWS: STAGE=dev REGIONS="eu-west-1 us-east-1"
	@$(DEPLOY) deploy $(TO)

remove: $(VENV)/.made node_modules/.made ## remove the service from AWS and keep the table; STAGE=, REGIONS=
	@$(DEPLOY) remove $(TO)

.PHONY: cdk
cdk: $(CDK)/.made # docs/recipes/terraform.md on what `make package` made, with its 470 MB
	@LEDGER_PACKAGED="$$(echo $(UPDATES) | tr ' ' :)" $(BIN)/python -m pytest -q tests/infra/test_recipes.py $(ARGS)

e2e: $(VENV)/.made $(ENGINE)/.made node_modules/.made ## deploy to an engine on this computer, use it from outside, compare; ARGS=--breaks: break it, check its alarms
	@$(BIN)/python -m lab.e2e $(ARGS)

smoke: $(VENV)/.made node_modules/.made ## try in your AWS account whether docs/assumptions.md holds, and clean up (again: make smoke-clean ID=); ARGS=--table, --here
	@$(BIN)/python -m lab.smoke --regions "$(REGIONS)" $(ARGS)

.PHONY: smoke-clean
smoke-clean: $(VENV)/.made
	@$(BIN)/python -m lab.smoke --clean "$(ID)"

node_modules/.made: package-lock.json
	@command -v npm > /dev/null || { echo "npm is not on PATH. make package, preflight, deploy, remove, e2e and smoke need Node.js 20.19 or later with npm" >&2; exit 1; }
	@echo "making node_modules"
	@npm ci --silent
	@touch $@

# A stamp is touched last, so an install that was cut off starts again. Each environment below says what it installs.
IS_NEW   = $(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("Python 3.11 or later is needed, and $(PYTHON) is %d.%d: make PYTHON=python3.12 ..." % v[:2])'
FINDS_US = -c 'import os, pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "checkout.pth").write_text(os.getcwd() + "\n")'

# Both at once: an installation waits for its downloads most of the time.
.PHONY: first
first:
	@$(IS_NEW)
	@$(MAKE) --silent --jobs 2 $(SMALL)/.made $(ENGINE)/.made

$(SMALL)/.made: requirements/small.lock
	@$(IS_NEW)
	@echo "making $(SMALL), once, for make demo, engine, demo-web, api and simulate: $(call BY,half a minute)"
	@$(PYTHON) -m venv --clear $(BARE) $(SMALL)
	@$(call INSTALL,$(SMALL)/bin/python,-r $<)
	@$(SMALL)/bin/python $(FINDS_US)
	@touch $@

# Its own files alone go: the environments inside it stay, and what depends on this stamp is made again.
$(VENV)/.made: requirements/dev.lock
	@$(IS_NEW)
	@echo "making $(VENV), $(if $(wildcard $@),anew because $< is newer,once), for the tests and all other tools: $(call BY,minutes)"
	@rm -rf $(addprefix $(VENV)/,bin include lib lib64 share)
	@$(PYTHON) -m venv $(VENV)
	@$(call INSTALL,$(BIN)/python,-r $<)
	@$(BIN)/python $(FINDS_US)
	@touch $@

# What cannot stand in the other environment has one of its own, over it:
# - aiobotocore pins an older botocore.
# - jsii pins an older typeguard, and its Node.js is 470 MB with the CDK: so only who asks for it has it.
# - zae-limiter pins aiobotocore and takes the name `ulid` from ulid-py: rivals are measured in processes that import nothing of ours.
$(OLDEST)/.made $(ASYNC)/.made $(CDK)/.made $(RIVALS)/.made: $(VENV)/%/.made: requirements/%.lock $(VENV)/.made
	@echo "making $(@D)"
	@rm -rf $(@D)
	@$(call INSTALL,$(BIN)/python,--target $(@D) -r $<)
	@touch $@

# LiteLLM and what its proxy imports: some 300 MB, so only who asks for it has it.
$(LITELLM)/.made: requirements/litellm.lock $(VENV)/.made
	@echo "making $(LITELLM)"
	@rm -rf $(LITELLM)
	@$(call INSTALL,$(BIN)/python,--target $(LITELLM) -r requirements/litellm.lock)
	@touch $@

# The engine pins its own botocore: a venv of its own keeps it from deciding ours.
$(ENGINE)/.made: requirements/engine.lock
	@$(IS_NEW)
	@echo "making $(ENGINE), once, a DynamoDB on this computer: $(call BY,half a minute)"
	@$(PYTHON) -m venv --clear $(BARE) $(ENGINE)
	@$(call INSTALL,$(ENGINE)/bin/python,-r $<)
	@touch $@
