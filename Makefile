# haul: the front door. `make help` lists what it does; CMakeLists.txt holds the build itself.
#
# Variables: PRESET (release, dev, asan, tsan), BUILD (the build directory, else build/PRESET or
# $HAUL_BUILD_DIR/PRESET), PREFIX and DESTDIR (install), JOBS, CMAKE_ARGS, CTEST_ARGS.

PRESET ?= release
BUILD ?= $(or $(HAUL_BUILD_DIR),build)/$(PRESET)
PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2> /dev/null || echo 2)
CMAKE_ARGS ?=
CTEST_ARGS ?=
MPI_TESTS ?=
NIC_GUEST ?=
PYTHONS ?=
SUITES ?= hide latency bandwidth split threads affinity order checked service clients share fresh programs

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build run test test-mpi test-rust test-python nic-guest deps bench bench-peers site wheel dist deb sbom install uninstall clean help tools configure

build: configure ## build what the installed packages allow (the default)
	@cmake --build $(BUILD) -j $(JOBS)
	@cat $(BUILD)/parts.txt

run: ## install what the command needs, build it, and take the tour: haul demo
	@scripts/deps.sh run
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) -j $(JOBS) --target haul_cli
	@$(BUILD)/bin/haul demo

test: ## install what the tests need, build, and run them all
	@scripts/deps.sh test
	@$(MAKE) --no-print-directory build
	@ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS) $(CTEST_ARGS)

test-mpi: ## run the MPI tests on haul under four MPIs (MPI_TESTS="--ranks 2 --only pt2pt" runs some)
	@scripts/deps.sh test
	@scripts/peers.sh
	@$(MAKE) --no-print-directory build
	@tests/mpi/run.py --transport haul --provider-dir $(BUILD)/lib --work $(BUILD)/mpi-tests \
	  --mpi openmpi4,openmpi5,mpich5,intel $(MPI_TESTS)

test-rust: configure ## build libhaul and test the Rust crates on it, where cargo is
	@cmake --build $(BUILD) -j $(JOBS) --target haul
	@build=$$(realpath $(BUILD)); E2E_SOURCE=$(CURDIR) E2E_BUILD=$$build E2E_LIBRARY=$$build/lib/libhaul.so \
	  bash tests/e2e/rust.sh

nic-guest: ## run the engine nic in a guest on an emulated card that is looped (NIC_GUEST="--quick" runs a part)
	@scripts/deps.sh ci
	@$(MAKE) --no-print-directory build
	@devices/nic/guest/run.py --build $(BUILD) $(NIC_GUEST)

bench-peers: ## install the MPIs that haul is compared with (~/.cache/haul/peers)
	@scripts/deps.sh test
	@scripts/peers.sh

wheel: ## build the Python package's wheels, into BUILD/wheels (PYTHONS="python3.12" chooses interpreters)
	@scripts/deps.sh run
	@scripts/python.sh wheel $(BUILD)/wheels $(PYTHONS)

test-python: ## the same, and test them
	@scripts/deps.sh run
	@HAUL_COMMAND=$${HAUL_COMMAND:-$(wildcard $(abspath $(BUILD))/bin/haul)} scripts/python.sh test $(BUILD)/wheels $(PYTHONS)

deps: ## install what every face of haul, its tests and its checks need
	@scripts/deps.sh all

bench: ## run every benchmark suite (SUITES="hide latency" runs some)
	@scripts/deps.sh run
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) -j $(JOBS) --target haul_cli
	@for suite in $(SUITES); do $(BUILD)/bin/haul bench $$suite || exit 1; done

site: ## build the site of documents and references: BUILD/site/index.html
	@scripts/deps.sh run
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) -j $(JOBS) --target haul_cli
	@scripts/site.sh $(BUILD)

install: configure ## install below PREFIX (/usr/local), staged in DESTDIR
	@cmake --build $(BUILD) -j $(JOBS) --target haul_product
	@scripts/install.sh install "$(BUILD)" "$(PREFIX)" "$(DESTDIR)"

uninstall: ## remove what `make install` put there (same PREFIX and DESTDIR)
	@scripts/install.sh uninstall "$(BUILD)" "$(PREFIX)" "$(DESTDIR)"

dist: ## write BUILD/haul-VERSION.tar.gz, the committed tree
	@packaging/dist.sh $(BUILD)

deb: ## build the Debian packages into BUILD/deb, and try them in a clean root
	@scripts/deps.sh ci
	@packaging/deb.sh $(BUILD)/deb
	@packaging/clean_root.sh $(BUILD)/deb

sbom: configure ## write BUILD/haul.spdx.json: what a build is made of
	@cmake --build $(BUILD) -j $(JOBS) --target haul_product
	@packaging/sbom.py $(BUILD) $(BUILD)/haul.spdx.json

clean: ## remove the build directory
	@if [ -f $(BUILD)/CMakeCache.txt ]; then rm -rf $(BUILD); fi

help: ## this text
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | \
	  while IFS="$$(printf '\t')" read -r target text; do printf '  make %-11s %s\n' "$$target" "$$text"; done
	@sed -n '/^# Variables/,/^$$/s/^# //p' $(MAKEFILE_LIST)

tools:
	@for tool in cmake c++; do \
	  command -v $$tool > /dev/null || { \
	    echo "haul: $$tool is missing; 'make run' installs what a build needs, or install: g++ cmake ninja-build" >&2; \
	    exit 1; }; \
	done

# Configured each time, so that packages installed since are found. Without ninja, make does the work.
configure: tools
	@generator=$$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' $(BUILD)/CMakeCache.txt 2> /dev/null); \
	if [ -z "$$generator" ]; then \
	  if command -v ninja > /dev/null; then generator=Ninja; else generator='Unix Makefiles'; fi; \
	fi; \
	mkdir -p $(BUILD); \
	cmake --preset $(PRESET) -B $(BUILD) -G "$$generator" $(CMAKE_ARGS) > $(BUILD)/configure.log 2>&1 || \
	  { cat $(BUILD)/configure.log >&2; exit 1; }
