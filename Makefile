# make demo, make test: everything else they need is set up on the way, in .venv.
# Needs Python 3.11 or later; PYTHON=... names one that is not found.

# All targets share .venv, so all of them set up all of it: it is made once, not back and forth.
LOCKS := requirements-dev.txt requirements-spark.txt
PYTEST_ARGS ?= -q
COMPILE := .venv/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --custom-compile-command "make lock" $(UPGRADE)
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help set-up demo bench spark-bundle test check format lock clean

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

set-up: ## Make .venv from the locks (all targets do it first; at once when nothing changed)
	@scripts/bootstrap.sh $(LOCKS)

demo: set-up ## Run the workflow on generated logs; SOURCE=dir takes the logs of a directory
	@.venv/bin/compactor demo $(if $(SOURCE),--source "$(SOURCE)") $(ARGS)

bench: set-up ## Measure one worker beside other clients; ARGS="--quick" for a first look
	@.venv/bin/python -m scripts.benchmark $(ARGS)

spark-bundle: set-up ## Build what a cluster needs for the Spark job; ARGS="--architecture x86_64"
	@.venv/bin/python -m scripts.spark_bundle $(ARGS)

test: check ## Run make check, then all tests; PYTEST_ARGS="-q -k word" for some
	@.venv/bin/python -m pytest tests $(PYTEST_ARGS)

check: set-up ## Lint, formatting, types, import rules
	@.venv/bin/ruff check --quiet .
	@.venv/bin/ruff format --quiet --check .
	@.venv/bin/mypy --no-error-summary
	@report=$$(.venv/bin/lint-imports --no-logo 2>&1) || { echo "$$report"; exit 1; }

format: set-up ## Format the code and mend what ruff can mend
	@.venv/bin/ruff check --fix --quiet . || true
	@.venv/bin/ruff format --quiet .

# The smaller locks are constrained by the larger one, so that all agree.
lock: set-up ## Write the locks anew from pyproject.toml; UPGRADE=--upgrade takes newer versions
	$(COMPILE) --extra local --extra dev --output-file requirements-dev.txt
	$(COMPILE) --constraint requirements-dev.txt --output-file requirements.txt
	$(COMPILE) --constraint requirements-dev.txt --extra spark --output-file requirements-spark.txt
	printf 'setuptools\nuv\n' | $(subst pyproject.toml,-,$(COMPILE)) --constraint requirements-dev.txt \
		--output-file requirements-bootstrap.txt

clean: ## Remove .venv and all that the tools left behind
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
