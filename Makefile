# The short way to everything. CMake does the work (CMakePresets.json names the builds); this file
# only puts the steps in order.
#
#   make            tools/deps, then a release build without tests: build/tandem, build/libtandem.so.0
#   make demo       synth, train, evaluate, predict, into ./demo
#   make test       what CI runs: release suite, minimal build, layer and style checks, ASan+UBSan
#   make test-long  ThreadSanitizer, everything under ASan, fuzzing, a fresh machine
#   make check      room order and style alone
#   make minimal    C compiler only: build-minimal/tandem
#   make debug | asan | tsan | cuda     the other presets, in build-<name>
#   make fuzz SECONDS=60                every fuzz target for so long
#   make install PREFIX=/where          a tree that can be moved
#   make package    a tarball that runs on other machines, and a .deb: build/package
#   make wheel      build/wheel/tandem-*.whl, the Python module (needs python3)
#
#   DEPS=0          install nothing, use what is there
#   CC=clang        takes effect on a clean tree (make clean first)
#   JOBS=n          compile and test n at a time

DEPS ?= 1
PREFIX ?= /usr/local
SECONDS ?= 60
JOBS ?= $(shell nproc)
export DEPS JOBS

# Options of this make are none of the inner one's business.
unexport MAKEFLAGS

.PHONY: all deps demo test test-long check minimal debug asan tsan cuda fuzz install package wheel clean
all: deps
	@tools/build release product

deps:
	@if [ "$(DEPS)" != 0 ]; then tools/deps; fi

demo: all
	@tools/demo

test:
	@tools/test short

test-long:
	@tools/test long

check: all
	@if [ "$(DEPS)" != 0 ]; then tools/deps --test; fi
	@tools/check-layers
	@tools/check-style

minimal cuda: deps
	@tools/build $@

debug asan:
	@if [ "$(DEPS)" != 0 ]; then tools/deps --test; fi
	@tools/build $@

tsan:
	@if [ "$(DEPS)" != 0 ]; then tools/deps --long; fi
	@tools/build tsan

fuzz:
	@if [ "$(DEPS)" != 0 ]; then tools/deps --long; fi
	@tools/build fuzz
	@tools/fuzz $(SECONDS)

install: all
	@cmake --install build --prefix "$$(realpath -ms "$(PREFIX)")" >build/install.log || \
	    { cat build/install.log; exit 1; }
	@echo "installed in $(DESTDIR)$$(realpath -ms "$(PREFIX)")"

package:
	@if [ "$(DEPS)" != 0 ]; then tools/deps --package; fi
	@tools/build release product
	@tools/package

# Of the same tree as the tarball, so it runs on other machines too.
wheel:
	@if [ "$(DEPS)" != 0 ]; then tools/deps --package; fi
	@tools/build release product
	@rm -rf build/wheel
	@tools/package stage build/wheel/tree
	@python/build-wheel build/wheel/tree build/wheel

# demo/ stays: it holds a trained model.
clean:
	rm -rf build build-minimal build-debug build-asan build-tsan build-cuda build-fuzz
