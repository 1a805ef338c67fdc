# The habits of this repository. Every target works in a fresh clone: the
# environment .venv is made by scripts/test when it is missing.
PYTHON := .venv/bin/python

.PHONY: help format format-check lint test test-fast test-slow all-checks \
	figures

help:
	@echo "format        rewrite the code in the project's style"
	@echo "lint          style, names, docstrings; format-check: layout only"
	@echo "test          the test suite without the slow tests"
	@echo "test-fast     stop at the first failure, last failures first"
	@echo "test-slow     the slow tests alone"
	@echo "all-checks    everything that has to pass before a change lands"
	@echo "figures       draw the pictures of docs/images again"

# pytest --version runs no test: it leaves the environment ready.
$(PYTHON):
	./scripts/test --version

format: | $(PYTHON)
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

format-check: | $(PYTHON)
	$(PYTHON) -m ruff format --check .

lint: | $(PYTHON)
	$(PYTHON) -m ruff check .

test:
	./scripts/test

test-fast:
	./scripts/test -x --failed-first -q

test-slow:
	./scripts/test -m slow

all-checks:
	./.ci/run

figures: | $(PYTHON)
	PYTHONPATH=. $(PYTHON) scripts/contact_sheet.py --out docs/images/views.png
