# make demo, make test: everything else they need is set up on the way, in .venv.
# Needs Python 3.11 or later; PYTHON=... names one that is not found.

# make demo needs a sixth of what the other targets need, which share all of it: .venv is then made
# once, not back and forth.
LOCKS := requirements-dev.txt requirements-spark.txt requirements-cdk.txt
DEMO_LOCKS := requirements-demo.txt
# Each process with whole modules (tests/support/balance.py says in which order). Three keep two
# processors busy: the tests wait for a third of their time, for clients that ask again and for ends.
# tests/support/selection.py says what is marked how.
TESTS = -q -n 3 --dist loadfile -m "not proof"
FAST_TESTS = tests/unit tests/golden tests/state -q -n 2 --dist loadfile -m fast
PYTEST = .venv/bin/python -m tests.support.runner
COMPILE := .venv/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --custom-compile-command "make lock" $(UPGRADE)
# The CDK's command line, on the Node.js of the lock, whatever the machine has; it reports to nobody.
CDK = PATH="$(CURDIR)/.venv/bin:$$PATH" CDK_DISABLE_CLI_TELEMETRY=true node_modules/.bin/cdk
# Says what a command is for before it begins, and afterwards how long it took.
STEP = scripts/step.sh
export PYTHON
# Images of Python set it, and hundreds of processes of the tests would then compile every module
# that they import, each for itself.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help set-up wheel image demo bench spark-bundle spark-jars synth diff bootstrap deploy destroy smoke test test-fast proof soak scale events-bench fuzz zoo check lint types import-rules servers spark-classes links test-servers format lock clean

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

set-up: ## Make .venv from the locks (targets do it first; at once when nothing changed)
	@scripts/bootstrap.sh $(LOCKS)

wheel: set-up ## Build dist/s3_compactor-*.whl, which installs without this checkout
	@.venv/bin/python -m hatchling build --target wheel

image: set-up ## Build the container image; ARGS="--architecture arm64 --tag NAME"
	@.venv/bin/python -m compactor_dev.image $(ARGS)

demo: ## Run the workflow on generated logs; SOURCE=dir takes the logs of a directory
	@scripts/bootstrap.sh $(DEMO_LOCKS) -- $(LOCKS)
	@.venv/bin/compactor demo $(if $(SOURCE),--source "$(SOURCE)") $(ARGS)

bench: set-up ## Measure: ARGS="worker|queries ..."; ARGS="worker --against COMMIT" compares two versions
	@.venv/bin/python -m compactor_dev.bench $(ARGS)

spark-bundle: set-up ## Build what a cluster needs for the Spark job; ARGS="--architecture x86_64"
	@.venv/bin/python -m compactor_bundling.bundles $(ARGS)

spark-jars: set-up ## Fetch the archives with which a deployment merges into tables with a key; make deploy does it, too
	@.venv/bin/python -m compactor_bundling.spark_jars

synth: node_modules ## Write the CloudFormation template to cdk.out/, without AWS; ARGS="-c config=FILE"
	@$(CDK) synth --quiet $(ARGS)
	@.venv/bin/python -m compactor_dev.written $(ARGS)

diff: node_modules ## Show what a deployment would change; ARGS="-c config=FILE"
	@.venv/bin/python -m compactor_dev.credentials diff $(ARGS)
	@$(CDK) diff --all $(ARGS)

bootstrap: node_modules ## Prepare an account and region for the CDK, once; ARGS="-c config=FILE"
	@.venv/bin/python -m compactor_dev.credentials bootstrap $(ARGS)
	@$(CDK) bootstrap $(ARGS)

deploy: node_modules ## Deploy to the account and region of your credentials; ARGS="-c config=FILE"
	@.venv/bin/python -m compactor_dev.credentials deploy $(ARGS)
	@.venv/bin/python -m compactor_dev.applications deploy $(ARGS)
	@$(CDK) deploy --all $(ARGS)

destroy: node_modules ## Remove the deployment; buckets and what is in them stay; ARGS="-c config=FILE"
	@.venv/bin/python -m compactor_dev.credentials destroy $(ARGS)
	@.venv/bin/python -m compactor_dev.applications destroy $(ARGS)
	@$(CDK) destroy --all $(ARGS)

smoke: node_modules ## Deploy, check and remove stacks of its own; CLEAN=1 removes what killed ones left; ARGS=--yes
	@.venv/bin/python -m compactor_dev.credentials smoke
	@PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m tests.aws $(if $(CLEAN),--clean) $(ARGS)

node_modules: package.json package-lock.json | set-up
	@$(STEP) "the CDK's command line (npm ci)" env PATH="$(CURDIR)/.venv/bin:$$PATH" \
		npm ci --no-audit --no-fund --loglevel=error
	@touch node_modules

test-fast: set-up ## Unit tests and formats, in about a minute: no Java, no servers, no downloads
	@echo "fast tests (pytest $(FAST_TESTS)) ..."
	@$(PYTEST) $(FAST_TESTS)

test: set-up ## Lint, types, unit tests, a sample of the proof; PYTEST_ARGS="-q -k word" for some of all tests
	@BESIDE=1 $(MAKE) --no-print-directory -j2 lint types import-rules links test-servers spark-classes
	@echo "tests (pytest $(or $(PYTEST_ARGS),$(TESTS))) ..."
	@$(PYTEST) tests $(or $(PYTEST_ARGS),$(TESTS))

proof: node_modules servers spark-classes ## Run all that make test leaves out; ARGS=--write puts the figures into docs/proof.md
	@.venv/bin/python -m tests.proof $(ARGS)

soak: set-up ## Simulate schedules for SECONDS=600; the last line has the figures
	@PYTHONPATH=functions:scripts:spark:. .venv/bin/python -m tests.simulation --seconds $(or $(SECONDS),600) $(ARGS)

scale: set-up ## Simulate runs over 100 million objects: requests, seconds, memory, dollars; ARGS=--write
	@PYTHONPATH=functions:scripts:spark:. .venv/bin/python -m tests.scale $(ARGS)

events-bench: set-up ## How many objects a process registers, lists and marks a second, on DynamoDB Local; ARGS="--objects 6000"
	@PYTHONPATH=functions:scripts:spark:. .venv/bin/python -m tests.scale.events $(ARGS)

fuzz: set-up ## Feed every parser hostile bytes for SECONDS=60; the last line has the figures
	@PYTHONPATH=functions:scripts:spark:. .venv/bin/python -m tests.hostile.fuzz $(or $(SECONDS),60) $(ARGS)

zoo: set-up ## Show what becomes of each kind of source; ARGS="--fuzz 600", or a name
	@PYTHONPATH=functions:scripts:spark:. .venv/bin/python -m tests.zoo $(ARGS)

check: lint types import-rules links ## Lint, formatting, types, import rules, links, spelling

lint: set-up
	@$(STEP) "lint (ruff check)" .venv/bin/ruff check --quiet .
	@$(STEP) "formatting (ruff format)" .venv/bin/ruff format --quiet --check .

types: set-up
	@$(STEP) "types (mypy; the first time takes a minute)" .venv/bin/mypy --no-error-summary

import-rules: set-up
	@$(STEP) "import rules (lint-imports)" .venv/bin/lint-imports --no-logo

links: set-up
	@$(STEP) "links of the documents" .venv/bin/python scripts/check_links.py
	@$(STEP) "spelling (codespell)" .venv/bin/codespell

# What the tests need besides, made once, below build/.
test-servers: set-up
	@.venv/bin/python -m tests.support.server_builds versitygw dynamodb_local table_jars

servers: set-up
	@.venv/bin/python -m tests.support.server_builds

spark-classes: set-up
	@$(STEP) "Spark's classes, made ready for the tests (once)" .venv/bin/python -m tests.support.java

format: set-up ## Format the code and mend what ruff can mend
	@.venv/bin/ruff check --fix --quiet . || true
	@.venv/bin/ruff format --quiet .

# The smaller locks are constrained by the larger one, so that all agree.
lock: set-up ## Write the locks anew from pyproject.toml; UPGRADE=--upgrade takes newer versions
	$(COMPILE) --extra local --extra iceberg --extra delta --extra lake --extra dev --output-file requirements-dev.txt
	$(COMPILE) --constraint requirements-dev.txt --extra lambda --extra iceberg --output-file requirements.txt
	$(COMPILE) --constraint requirements-dev.txt --extra spark --output-file requirements-spark.txt
	$(COMPILE) --constraint requirements-dev.txt --extra cdk --output-file requirements-cdk.txt
	$(COMPILE) --constraint requirements-dev.txt --extra local --extra query --output-file requirements-demo.txt
	printf 'hatchling\nsetuptools\nuv\n' | $(subst pyproject.toml,-,$(COMPILE)) --constraint requirements-dev.txt \
		--output-file requirements-bootstrap.txt
	PATH="$(CURDIR)/.venv/bin:$$PATH" npm install --package-lock-only --no-audit --no-fund

clean: ## Remove .venv and all that the tools left behind
	rm -rf .venv node_modules cdk.out .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache build dist
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
