# Two commands do everything: `make demo` runs the main job, `make test` runs the tests.
# Each first sets up what is missing (see scripts/setup.sh), which takes seconds when nothing is.

SHELL := bash
SETUP := scripts/setup.sh
PY := .venv/bin/python
# `make test REQUIRE_DOCKER=1` fails where Docker or PostgreSQL cannot be had, instead of leaving
# tests out.
REQUIRED := $(if $(REQUIRE_DOCKER),--require-docker)

.PHONY: demo test test-next test-skypilot lint setup setup-tests lock clean

demo:
	@$(SETUP) $(REQUIRED)
	@.venv/bin/osmosis demo $(ARGS)

test:
	@$(SETUP) $(REQUIRED)
	@REQUIRE_ALL=$(REQUIRE_DOCKER) scripts/test.sh $(ARGS)

# The Harbor tests on the newest Harbor, which the lock cannot hold (see docs/development.md).
test-next:
	@$(SETUP) $(REQUIRED)
	@scripts/test-harbor-next.sh tests/harbor_backend/rollouts tests/harbor_backend/native tests/harbor_backend/jobs $(ARGS)

# The tests on SkyPilot's sandbox SDK, in an environment of their own (see docs/skypilot.md).
test-skypilot:
	@$(SETUP) $(REQUIRED)
	@scripts/test-skypilot.sh $(ARGS)

lint:
	@$(SETUP) --no-docker
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

setup:
	@$(SETUP) $(REQUIRED)

# All that the tests need beyond that, so that none of them has anything to install.
setup-tests:
	@$(SETUP) $(REQUIRED)
	@REQUIRE_ALL=$(REQUIRE_DOCKER) scripts/test.sh --setup
	@scripts/test-skypilot.sh --setup
	@scripts/test-harbor-next.sh --setup

lock:
	@scripts/lock.sh $(ARGS)

clean:
	rm -rf .venv .venv-tools dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
