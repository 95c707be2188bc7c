# Two commands for a user: `make run` shows what Anabranch does, `make test` proves it.
# Both make the virtual environment themselves.

PY := .venv/bin/python
WORKERS ?= 2

.PHONY: run test quick lint types imports pytest packages mutants bench bench-peers lock lock-peers clean
.DEFAULT_GOAL := run

run: .venv/.ready
	@$(PY) -m anabranch demo auctions

test: lint types imports pytest

# Lint, types, import rules and the quick tests of what git says changed; ROOM=engine for one room.
quick: .venv/.ready
	@$(PY) tools/quick.py $(if $(ROOM),--room "$(ROOM)")

lint: .venv/.ready
	$(PY) -m ruff check src tests bench tools
	$(PY) -m ruff format --check src tests bench tools

types: .venv/.ready
	$(PY) -m mypy

imports: .venv/.ready
	.venv/bin/lint-imports

# Chromium and mosquitto are installed from Debian's packages only where CI, or PACKAGES=1, asks for it.
pytest: .venv/.ready $(if $(or $(CI),$(PACKAGES)),packages)
	$(PY) -m pytest -n $(WORKERS) -q

packages:
	@sh tools/make_packages.sh

# Breaks the program in many places, one at a time, and looks whether a test notices: about ten minutes.
mutants: .venv/.ready
	$(PY) tools/mutants.py $(if $(ONLY),--only "$(ONLY)")

bench: .venv/.ready
	$(PY) bench/run.py

# Engines to compare with that do not fit beside Anabranch; without them a benchmark says that they are absent.
bench-peers:
	@sh tools/make_venv.sh .venv-peers bench/peers/requirements.lock

# requirements.lock holds names and versions only.
lock:
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url -o requirements.lock

lock-peers:
	uv pip compile bench/peers/requirements.in --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url -o bench/peers/requirements.lock

.venv/.ready: requirements.lock pyproject.toml tools/make_venv.sh
	@sh tools/make_venv.sh
	@touch $@

clean:
	rm -rf .venv .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
