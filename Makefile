# reprod: build, test and install.  Plain GNU make, no configure step.
#
#   make run       install what is missing, build, serve on 127.0.0.1:7357, fill the matrix
#   make test      install what is missing, run every test (gcc, clang, sanitizers, lint)
#   make           build everything into build/
#   make check     unit and system tests of this flavour only
#   make check-stacks  real versions of cuDNN side by side; downloads 1.5 GB
#   make check-pytorch the probes and the example with PyTorch; downloads 3 GB, once
#   make soak      kill the service a thousand times during its jobs
#   make bench     how fast it is, beside peers on this machine: a table and build/bench/*.json
#   make fuzz      libFuzzer on everything that reads bytes from outside (SECONDS_EACH=60)
#   make gpu-check everything that only a GPU can show; exit status 77 where there is none
#   make detection every control twenty times, every other variant in 200 processes, and the
#                  digests of sizes that take long
#   make lint      formatting, layers, headers, clang-tidy, cppcheck (LINT=quick: no analyzer)
#   make install   PREFIX=/usr/local DESTDIR=
#   make bundle    one folder, and a .tar.gz of it, for machines that have nothing but glibc
#   make clean
#
#   CC=clang                     another compiler, in its own build folder
#   SAN=address|undefined|thread sanitizers (a comma list), in their own build folder
#   CUDA=0                       leave CUDA out although nvcc is there
#   NVCC_ARCHS="90"              GPU architectures; default: all that are served
#   WERROR=1                     warnings are errors (set by CI and by make test)
#   V=1                          show commands
.DEFAULT_GOAL := all
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := $(if $(findstring clang,$(CC)),clang++,g++)
endif
NVCC   ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA   ?= $(if $(NVCC),1,0)
PREFIX ?= /usr/local
CFLAGS ?= -O2 -g
WERROR ?= $(if $(CI),1)
Q      := $(if $(V),,@)
comma  := ,

FLAVOUR := $(if $(findstring clang,$(CC)),clang)$(if $(SAN),$(if $(findstring clang,$(CC)),-)san-$(subst $(comma),-,$(SAN)))
B       := build$(if $(FLAVOUR),/$(FLAVOUR))

PKGS := libuv libmicrohttpd jansson sqlite3 zlib
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
        -Wold-style-definition -Wwrite-strings -Wpointer-arith -Wvla -Wundef -Wformat=2 \
        $(if $(findstring clang,$(CC)),-Wno-gnu-folding-constant) $(if $(WERROR),-Werror)

# Bits are the product: no contraction into FMA, no fast-math, no -march.  Where a file has
# code for a newer instruction set it chooses at run time, and the bits are the same.
NUMERICS := -ffp-contract=off
# REPROD_HEAP: workloads/worker/heap.c is in.  The sanitizers have a heap of their own.
COMMON    = -std=c17 -D_GNU_SOURCE -I. $(NUMERICS) $(WARN) -include daemon/base/banned.h \
            -fno-common -fPIE -DREPROD_VERSION='"$(VERSION)"' $(if $(SAN),,-DREPROD_HEAP)
VERSION  := $(shell cat VERSION)
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS))
PKG_LIBS   = $(shell pkg-config --libs $(PKGS))
SANFLAGS  := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# ThreadSanitizer does not understand OpenMP run-time libraries, so the worker (which races
# on purpose) stays out of it; daemon, agent and unit tests of their code are in.
WSANFLAGS := $(if $(findstring thread,$(SAN)),,$(SANFLAGS))

DAEMON_SRC := $(sort $(wildcard daemon/*.c daemon/*/*.c api/*.c api/*/*.c db/*.c) \
                workloads/instruments/digest.c)
# What the worker needs of daemon/base: libc only.
WORKER_BASE := daemon/base/nearest.c
WORKER_SRC := $(sort $(wildcard workloads/*.c workloads/*/*.c)) $(WORKER_BASE)
INSTRUMENTS_SRC := $(sort $(wildcard workloads/instruments/*.c))
NVML_SRC   := $(sort $(wildcard cuda/nvml/*.c))
FAKE_NVML_SRC := $(sort $(wildcard tests/fixtures/nvml/*.c))
SELFTEST_SRC := $(sort $(wildcard tests/selftest/*.c))
UNIT_SRC   := $(sort $(wildcard tests/unit/test_*.c tests/unit/*/test_*.c))
FUZZ_SRC   := $(sort $(filter-out tests/fuzz/engine.c,$(wildcard tests/fuzz/*.c)))
ifneq ($(findstring thread,$(SAN)),)
UNIT_SRC   := $(filter-out tests/unit/worker/test_workloads.c,$(UNIT_SRC))
endif
CUDA_SRC   := $(sort $(wildcard cuda/*.cu cuda/*/*.cu))
CUDA_C_SRC := $(sort $(wildcard cuda/*/*.c))
TRY_LIBRARIES_SRC := $(wildcard tests/fixtures/cudnn/try_*.c) \
                $(filter-out cuda/nvml/% cuda/cudnn/conv_%,$(CUDA_C_SRC)) \
                workloads/instruments/digest.c $(addprefix workloads/worker/,\
                libraries.c emit.c tensor.c)
CUDA_WORKER_SRC := $(filter cuda/worker/%,$(CUDA_SRC))
SIM_SRC    := $(sort $(filter-out tests/simulator/test_%,$(wildcard tests/simulator/*.cpp)))
SIM_SELFTEST_SRC := $(sort $(wildcard tests/simulator/*.cu))
# What only the CPU backend needs.  The CPU's workloads stay: they define the operations.
CPU_ONLY   := workloads/worker/backend_cpu.c
EMBEDDED   := $(sort $(wildcard web/*.* db/migrations/*.sql workloads/profiles/*.json \
                api/openapi.json tests/gpu/results/*.json))
LAUNCH_SRC := daemon/agent/launch_main.c
MAINS      := daemon/main.c workloads/worker/main.c $(LAUNCH_SRC)

obj = $(patsubst %,$(B)/obj/%.o,$(1))
sim = $(patsubst %,$(B)/sim/%.o,$(1))
DAEMON_LIB := $(call obj,$(filter-out $(MAINS),$(DAEMON_SRC)) $(EMBEDDED))
WORKER_LIB := $(call obj,$(filter-out $(MAINS),$(WORKER_SRC)))
PROGRAMS   := $(B)/reprod $(B)/reprod-worker $(B)/reprod-launch
# The longest first: what comes after it still runs beside the system tests.
TESTS      := $(patsubst tests/unit/%.c,$(B)/tests/%,$(filter %/test_workloads.c,$(UNIT_SRC)) \
                $(filter-out %/test_workloads.c,$(UNIT_SRC)))
INSTRUMENTS := $(B)/libreprod-instruments.so
DIGEST_LIB := $(B)/libreprod-digest.so
SELFTEST   := $(B)/tests/reprod-worker-selftest
BANDWIDTH_SRC := tests/gpu/bandwidth.cu
FAKE_NVML  := $(B)/tests/nvml/libnvidia-ml.so.1 $(B)/tests/nvml-old/libnvidia-ml.so.1
# The CUDA worker is for the plain build.  Its kernels run on the CPU in the sanitizers' too.
ifeq ($(CUDA)$(FLAVOUR),1)
PROGRAMS   += $(B)/reprod-worker-cuda
BANDWIDTH  := $(B)/tests/gpu-bandwidth
endif
ifeq ($(findstring thread,$(SAN))$(findstring clang,$(CC)),)
SIMULATORS := $(B)/tests/reprod-worker-cudasim $(B)/tests/reprod-worker-cudasim-selftest \
              $(B)/tests/cudasim-bandwidth
SIM_TESTS  := $(B)/tests/test_cudasim
endif
CUDA_LIB   := $(call obj,$(CUDA_C_SRC) $(filter-out $(MAINS) $(CPU_ONLY),$(WORKER_SRC)))

TRY_LIBRARIES := $(if $(FLAVOUR),,$(B)/tests/try-libraries)

# Libraries that came along (make bundle) are found beside the program, before those of
# LD_LIBRARY_PATH and by libraries too: so DT_RPATH, which DT_RUNPATH is not.  The worker has
# a folder of its own, since what it loads under test must not find the daemon's.
RPATH        := --disable-new-dtags,-rpath,\$$ORIGIN/lib
WORKER_RPATH := $(RPATH)/worker

all: $(PROGRAMS) $(INSTRUMENTS) $(DIGEST_LIB)
$(B)/reprod: $(call obj,daemon/main.c) $(DAEMON_LIB) $(B)/link.flags
	$(Q)echo "  LD   $@"; $(CC) $(CFLAGS) $(SANFLAGS) -pie -Wl,$(RPATH) $(LDFLAGS) \
	    -o $@ $(filter %.o,$^) $(PKG_LIBS) -lm -lpthread
$(B)/reprod-worker: $(call obj,workloads/worker/main.c) $(WORKER_LIB) $(B)/link.flags
	$(Q)echo "  LD   $@"; $(CC) $(CFLAGS) $(WSANFLAGS) -pie -fopenmp -Wl,--build-id \
	    -Wl,$(WORKER_RPATH) $(LDFLAGS) -o $@ $(filter %.o,$^) -lm
$(SELFTEST): $(call obj,workloads/worker/main.c $(SELFTEST_SRC)) $(WORKER_LIB) $(B)/link.flags
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(CC) $(CFLAGS) $(WSANFLAGS) -pie -fopenmp \
	    -Wl,--build-id $(LDFLAGS) -o $@ $(filter %.o,$^) -lm
# The CUDA run-time library is static, the other libraries of CUDA are loaded by the run:
# the program starts, and says what is missing, on a machine that has none of them.
$(B)/reprod-worker-cuda: $(call obj,workloads/worker/main.c $(CUDA_SRC)) $(CUDA_LIB) \
        $(B)/link.flags
	$(Q)echo "  LD   $@"; $(NVCC) -ccbin $(CXX) -cudart static -o $@ $(filter %.o,$^) \
	    -Xcompiler -pie,-fopenmp,-static-libstdc++,-static-libgcc \
	    -Xlinker --build-id,$(WORKER_RPATH) -lm
$(B)/tests/gpu-bandwidth: $(call obj,$(BANDWIDTH_SRC) $(CUDA_WORKER_SRC)) $(CUDA_LIB) \
        $(B)/link.flags
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(NVCC) -ccbin $(CXX) -cudart static -o $@ \
	    $(filter %.o,$^) -Xcompiler -pie,-fopenmp,-static-libstdc++,-static-libgcc -lm
SIM_LINK = mkdir -p $(@D); echo "  LD   $@"; $(CXX) $(CFLAGS) $(WSANFLAGS) -pie -fopenmp \
           -Wl,--build-id $(LDFLAGS) -o $@ $(filter %.o,$^)
$(B)/tests/reprod-worker-cudasim: $(call obj,workloads/worker/main.c) $(CUDA_LIB) \
        $(call sim,$(CUDA_SRC) $(SIM_SRC)) $(B)/link.flags
	$(Q)$(SIM_LINK) -lm
$(B)/tests/reprod-worker-cudasim-selftest: $(call obj,workloads/worker/main.c) $(CUDA_LIB) \
        $(call sim,$(CUDA_WORKER_SRC) $(SIM_SRC) $(SIM_SELFTEST_SRC)) $(B)/link.flags
	$(Q)$(SIM_LINK) -lm
$(B)/tests/cudasim-bandwidth: $(CUDA_LIB) $(B)/link.flags \
        $(call sim,$(BANDWIDTH_SRC) $(CUDA_WORKER_SRC) $(SIM_SRC))
	$(Q)$(SIM_LINK) -lm
$(B)/tests/test_cudasim: $(call sim,tests/simulator/test_cudasim.cpp) $(CUDA_LIB) \
        $(call sim,$(CUDA_WORKER_SRC) $(SIM_SRC)) $(B)/link.flags
	$(Q)$(SIM_LINK) -lcmocka -lm
# Static, so that setting limits and executing costs no dynamic linking.
$(B)/reprod-launch: $(call obj,$(LAUNCH_SRC)) $(B)/link.flags
	$(Q)echo "  LD   $@"; $(CC) $(CFLAGS) -static-pie $(LDFLAGS) -o $@ $(filter %.o,$^)
# Digest and exact sums for other languages.  Never sanitized: it is loaded into Python.
$(INSTRUMENTS): $(INSTRUMENTS_SRC:%=$(B)/pic/%.o) $(B)/link.flags
	$(Q)echo "  LD   $@"; $(CC) $(CFLAGS) -shared -fopenmp $(LDFLAGS) -o $@ $(filter %.o,$^)
# The same for programs under observation: it brings no OpenMP of its own into them.
$(DIGEST_LIB): $(patsubst %,$(B)/pic/%.o,$(filter-out %_parallel.c,$(INSTRUMENTS_SRC))) \
        $(B)/link.flags
	$(Q)echo "  LD   $@"; $(CC) $(CFLAGS) -shared -Wl,-z,defs $(LDFLAGS) -o $@ $(filter %.o,$^)
# Never sanitized: a driver's library is not.
$(B)/tests/nvml-old/libnvidia-ml.so.1: FAKE = -DFAKE_NVML_OLD
$(FAKE_NVML): $(FAKE_NVML_SRC) tests/fixtures/nvml/fake_nvml.h $(B)/cc.flags
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(CC) $(COMMON) $(CFLAGS) -fPIC $(FAKE) -shared \
	    -o $@ $(FAKE_NVML_SRC) -lpthread
$(B)/tests/cuda/test_nvml $(B)/tests/cuda/test_nvml_unusable: $(FAKE_NVML)
$(B)/tests/cuda/test_conv_bound: $(call obj,cuda/cudnn/conv_bound.c)
$(B)/tests/try-libraries: $(call obj,$(TRY_LIBRARIES_SRC)) $(B)/link.flags
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(CC) $(CFLAGS) -pie -fopenmp $(LDFLAGS) -o $@ \
	    $(filter %.o,$^)
$(B)/tests/%: $(B)/obj/tests/unit/%.c.o $(DAEMON_LIB) $(WORKER_LIB) $(call obj,$(NVML_SRC)) \
    $(B)/link.flags
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(CC) $(CFLAGS) $(SANFLAGS) -pie -fopenmp $(LDFLAGS) \
	    -o $@ $(filter %.o,$(sort $^)) $(PKG_LIBS) -lcmocka -lm -lpthread

BENCHES := $(B)/tests/bench-ingest $(B)/tests/bench-instruments
$(B)/tests/bench-ingest: $(call obj,tests/bench/ingest.c) $(DAEMON_LIB) $(B)/link.flags
$(B)/tests/bench-instruments: $(call obj,tests/bench/instruments.c $(INSTRUMENTS_SRC)) \
        $(B)/link.flags
$(BENCHES):
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(CC) $(CFLAGS) $(SANFLAGS) -pie -fopenmp $(LDFLAGS) \
	    -o $@ $(filter %.o,$(sort $^)) $(PKG_LIBS) -lm -lpthread

# The fuzz targets, with what they call beyond the daemon: run with their corpus, and, in a
# flavour of its own, by libFuzzer.
FUZZ_LIB = $(call obj,$(FUZZ_SRC) $(addprefix cuda/library/,elf.c ldcache.c))
$(B)/tests/test_fuzz: $(FUZZ_LIB)
$(B)/reprod-fuzz: $(call obj,tests/fuzz/engine.c) $(FUZZ_LIB) $(DAEMON_LIB) $(B)/link.flags
	$(Q)echo "  LD   $@"; $(CC) $(CFLAGS) $(SANFLAGS) -fsanitize=fuzzer -pie $(LDFLAGS) -o $@ \
	    $(filter %.o,$^) $(PKG_LIBS) -lm -lpthread

$(B)/obj/workloads/%.c.o: FLAGS = $(WSANFLAGS) -fopenmp
$(call obj,$(WORKER_BASE)): FLAGS = $(WSANFLAGS)
$(B)/obj/tests/selftest/%.c.o: FLAGS = $(WSANFLAGS) -fopenmp
$(B)/obj/tests/bench/%.c.o: FLAGS = $(WSANFLAGS) $(PKG_CFLAGS) -fopenmp
$(B)/obj/$(LAUNCH_SRC).o: FLAGS =
$(B)/obj/%.o: FLAGS = $(SANFLAGS) $(PKG_CFLAGS)
$(B)/obj/%.c.o: %.c $(B)/cc.flags
	$(Q)echo "  CC   $<"; mkdir -p $(@D); \
	    $(CC) $(CPPFLAGS) $(COMMON) $(CFLAGS) $(FLAGS) -MMD -MP -c -o $@ $<
$(B)/pic/%.c.o: %.c $(B)/cc.flags
	$(Q)echo "  CC   $< (pic)"; mkdir -p $(@D); \
	    $(CC) $(CPPFLAGS) $(COMMON) $(CFLAGS) -fPIC -fopenmp -MMD -MP -c -o $@ $<

$(B)/obj/cuda/%.c.o $(B)/obj/tests/fixtures/cudnn/%.c.o: FLAGS = $(WSANFLAGS) -fopenmp
# GPU code for every architecture that is served and the compiler knows, and PTX of the
# newest for those to come.  No contraction into FMA, as everywhere.
ifneq ($(filter %/reprod-worker-cuda,$(PROGRAMS)),)
NVCC_KNOWN := $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code))
NVCC_ARCHS ?= $(filter 75 80 86 89 90 100 120,$(NVCC_KNOWN))
NVCC_LAST    := $(lastword $(NVCC_ARCHS))
NVCC_GENCODE := $(foreach a,$(filter-out $(NVCC_LAST),$(NVCC_ARCHS)),-gencode arch=compute_$a,code=sm_$a) \
                -gencode arch=compute_$(NVCC_LAST),code=[sm_$(NVCC_LAST),compute_$(NVCC_LAST)]
endif
CXX_COMMON = -D_GNU_SOURCE -I. -DREPROD_VERSION='"$(VERSION)"'
# C++14 is all that a C-like subset needs; the headers of later standards take a third longer.
NVCC_FLAGS = -std=c++14 $(CXX_COMMON) -O2 -lineinfo -fmad=false -ccbin $(CXX) $(NVCC_GENCODE) \
             -Xcompiler -fPIE,-ffp-contract=off,-Wall,-Wextra,-Wshadow,-Wno-missing-field-initializers,-fopenmp \
             $(if $(WERROR),-Werror all-warnings)
# Kernels read the same bytes as words of several sizes, which a GPU's compiler allows.
SIM_FLAGS  = -std=c++20 $(CXX_COMMON) -DREPROD_CUDASIM -ffp-contract=off -fno-strict-aliasing -fPIE -fopenmp \
             -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wno-unknown-pragmas \
             -Wno-missing-field-initializers $(if $(WERROR),-Werror)
$(B)/obj/%.cu.o: %.cu $(B)/nvcc.flags
	$(Q)echo "  NVCC $<"; mkdir -p $(@D); $(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
# Half of the time goes into its C++ headers: they are read once.
SIM_HEADER := $(B)/sim/cudasim.h
$(SIM_HEADER).gch: tests/simulator/cudasim.h $(B)/cc.flags
	$(Q)echo "  CXX  $<"; mkdir -p $(@D); \
	    $(CXX) $(SIM_FLAGS) $(CFLAGS) $(WSANFLAGS) -MMD -MP -MF $(SIM_HEADER).d -o $@ -x c++-header $<
$(B)/sim/%.o: % $(SIM_HEADER).gch
	$(Q)echo "  CXX  $< (simulator)"; mkdir -p $(@D); $(CXX) $(SIM_FLAGS) $(CFLAGS) $(WSANFLAGS) \
	    -Winvalid-pch -include $(SIM_HEADER) -MMD -MP -c -o $@ -x c++ $<

# One object an embedded file: the bytes, a NUL, and an entry in section reprod_embedded
# (daemon/base/embed.h).
define EMBED_ASM
.section .rodata\n.balign 16\n1: .incbin "$<"\n2: .byte 0\n3: .asciz "$<"\n\
.section reprod_embedded,"aw"\n.balign 8\n.quad 3b, 1b, 2b\n\
.section .note.GNU-stack,"",@progbits\n
endef
$(call obj,$(EMBEDDED)): $(B)/obj/%.o: %
	$(Q)mkdir -p $(@D); printf '$(EMBED_ASM)' | $(CC) -x assembler -c -o $@ -

# Rebuild when flags change and relink when a source file disappears: neither touches a
# timestamp, so each list is kept in a file that is rewritten only on change.
$(B)/cc.flags:   LIST = $(CC) $(CPPFLAGS) $(COMMON) $(CFLAGS) $(SANFLAGS)
$(B)/nvcc.flags: LIST = $(NVCC) $(NVCC_FLAGS)
$(B)/link.flags: LIST = $(CC) $(LDFLAGS) $(RPATH) $(DAEMON_SRC) $(FUZZ_SRC) $(WORKER_SRC) $(EMBEDDED) $(SELFTEST_SRC) \
                        $(CUDA_SRC) $(CUDA_C_SRC) $(SIM_SRC) $(SIM_SELFTEST_SRC)
$(B)/%.flags: FORCE
	@mkdir -p $(@D); echo '$(LIST)' | cmp -s - $@ || echo '$(LIST)' >$@

deps-run:
	@deploy/install-deps.sh run
deps-test:
	@deploy/install-deps.sh test

# Code for this machine's GPUs, or portable code where there is none: for all architectures
# it takes minutes.
GPU_ARCHS = $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | \
              tr -d . | grep -xE '[0-9]+' | sort -nu)
RUN_ARCHS = $(if $(filter-out file undefined,$(origin NVCC_ARCHS)),$(NVCC_ARCHS),$(or \
              $(filter $(NVCC_KNOWN),$(GPU_ARCHS)),75))
run: deps-run
	@$(MAKE) --no-print-directory all NVCC_ARCHS="$(RUN_ARCHS)"
	@exec build/reprod serve $(RUNFLAGS)

test: deps-test
	@tests/run-all.sh

# The interpreter that has pytest: a machine may have several.
PYTHON = $(shell for p in python3 /usr/bin/python3; do $$p -c 'import pytest, xdist' 2>/dev/null && echo $$p && break; done)
# Half of the tests wait rather than work.
BESIDE = $(shell expr $$(nproc) \* 3 / 2)
check: check-unit check-system
check-unit: all $(TESTS) $(SELFTEST) $(SIM_TESTS)
	@REPROD_BUILD=$(B) PYTHON=$(PYTHON) tests/run-unit.sh $(TESTS) $(SIM_TESTS)
check-system: all $(SELFTEST) $(BENCHES) $(TRY_LIBRARIES) $(SIMULATORS) $(BANDWIDTH) $(FAKE_NVML)
	@MAKEFLAGS= REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) -m pytest -q -c tests/pytest.ini \
	    -p no:cacheprovider -n $(BESIDE) --durations=15 $(PYTEST) tests/system tests/web
soak: all $(SELFTEST)
	@REPROD_BUILD=$(CURDIR)/$(B) REPROD_KILLS=1000 $(PYTHON) -m pytest -q -c tests/pytest.ini \
	    -p no:cacheprovider tests/system/test_durability.py
# Ratios of what ran in turns; BENCH='--quick', or names of benchmarks.
bench: all $(BENCHES) $(SELFTEST)
	@REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) tests/bench/bench.py $(BENCH)
# What is found is kept in build/fuzz; TARGETS= names some of tests/fuzz/corpus.
SECONDS_EACH ?= 60
FUZZ_FLAVOUR := CC=clang SAN=fuzzer-no-link,address,undefined CUDA=0
fuzz: deps-test
	@$(MAKE) --no-print-directory $(FUZZ_FLAVOUR) fuzz-program
	@tests/fuzz/run.sh build/clang-san-fuzzer-no-link-address-undefined/reprod-fuzz \
	    $(SECONDS_EACH) build/fuzz $(TARGETS)
fuzz-program: $(B)/reprod-fuzz
# Real versions of cuDNN as stacks; downloads them.
check-stacks: all $(TRY_LIBRARIES)
	@REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) -m pytest -q -s -c tests/pytest.ini \
	    -p no:cacheprovider tests/stacks
# The probes with PyTorch, JAX and numpy, which are installed into a cache of the user's, once.
PYTORCH_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/reprod/pytorch
check-pytorch: $(INSTRUMENTS) $(DIGEST_LIB) $(PYTORCH_CACHE)/installed
	@REPROD_BUILD=$(CURDIR)/$(B) $(PYTORCH_CACHE)/bin/python -m pytest -q -rs -c tests/pytest.ini \
	    -p no:cacheprovider $(PYTEST) $(addprefix tests/system/test_python_,$(addsuffix .py,\
	    instruments probe checkpoints pytorch examples jax))
$(PYTORCH_CACHE)/installed:
	@echo "  GET  torch into $(@D)"; mkdir -p $(@D); python3 -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet torch jax numpy pytest && touch $@
detection: all $(SIMULATORS) $(SELFTEST)
	@REPROD_BUILD=$(CURDIR)/$(B) REPROD_SURVEYS=20 REPROD_PROCESSES=200 REPROD_SCHEDULES=50 \
	    REPROD_LOCALISATIONS=20 $(PYTHON) -m pytest -v -c tests/pytest.ini -p no:cacheprovider \
	    tests/system/test_detection.py tests/system/test_cudasim.py \
	    tests/system/test_localise.py tests/system/test_golden.py
build-tests: all $(TESTS) $(SELFTEST) $(BENCHES) $(TRY_LIBRARIES) $(SIMULATORS) $(SIM_TESTS) $(BANDWIDTH)

# On a machine with a GPU: needs gcc, g++, nvcc and Python, and none of the daemon's libraries.
# The check builds them itself: its deadline includes that.
gpu-check:
	@python3 tests/gpu/check.py --build '$(MAKE)' --nvcc '$(NVCC)' --out '$(OUT)' $(GPUCHECK)
gpu-programs: $(B)/reprod-worker $(B)/reprod-worker-cuda $(BANDWIDTH)

C_FILES   := $(sort $(wildcard daemon/*.[ch] daemon/*/*.[ch] api/*.[ch] api/*/*.[ch] db/*.[ch] \
               workloads/*.[ch] workloads/*/*.[ch] cuda/*.cu cuda/*.h cuda/*/*.cu cuda/*/*.[ch] \
               tests/unit/*.[ch] tests/unit/*/*.[ch] tests/fuzz/*.[ch] tests/bench/*.c tests/selftest/*.[ch] tests/simulator/*.* tests/gpu/*.cu))
C_FILES   += $(sort $(wildcard tests/fixtures/*/*.[ch]))
CXX_HEADERS := $(wildcard cuda/kernels/*.h cuda/worker/*.h tests/simulator/*.h tests/fixtures/abi/*.h)
HEADERS   := $(filter-out $(CXX_HEADERS),$(filter %.h,$(C_FILES)))
TIDY      := $(patsubst %,$(B)/tidy$(LINT)/%.ok,$(DAEMON_SRC) $(WORKER_SRC) $(NVML_SRC))
lint: format-check check-layers check-docs check-headers tidy cppcheck
format-check:
	@clang-format --dry-run --Werror $(C_FILES)
format:
	@clang-format -i $(C_FILES)
check-layers:
	@tests/check_layers.py
check-docs:
	@tests/check-docs.sh
check-headers: $(HEADERS:%=$(B)/headers/%.ok) $(CXX_HEADERS:%=$(B)/headers/%.ok)
$(CXX_HEADERS:%=$(B)/headers/%.ok): $(B)/headers/%.ok: %
	@mkdir -p $(@D); $(CXX) $(SIM_FLAGS) -Werror -fsyntax-only -x c++ $< && touch $@
$(B)/headers/%.h.ok: %.h
	@mkdir -p $(@D); $(CC) $(COMMON) $(PKG_CFLAGS) -fopenmp \
	    -Werror -fsyntax-only -x c $< && touch $@
# The analyzer walks paths: a second a file, and minutes in nested loops over arrays, which
# it never sees here: the sanitizers see workloads run.
TIDY_CHECKS = $(if $(LINT)$(filter workloads/,$(dir $<)),--checks=-clang-analyzer-*)
tidy: $(TIDY)
$(B)/tidy$(LINT)/%.ok: % .clang-tidy
	$(Q)echo "  TIDY $<"; mkdir -p $(@D); clang-tidy --quiet $(TIDY_CHECKS) $< -- -std=c17 \
	    -D_GNU_SOURCE -I. $(PKG_CFLAGS) -DREPROD_VERSION='""' $(if $(filter workloads/%,$<),-fopenmp) 2>/dev/null \
	    && touch $@
cppcheck:
	@cppcheck --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr \
	    --suppress=missingIncludeSystem -j2 -I. -D_GNU_SOURCE --std=c11 \
	    daemon api db workloads/worker workloads/instruments

install: all
	install -D -m755 build/reprod $(DESTDIR)$(PREFIX)/bin/reprod
	install -D -m755 build/reprod-worker $(DESTDIR)$(PREFIX)/libexec/reprod/reprod-worker
	$(if $(filter %/reprod-worker-cuda,$(PROGRAMS)),install -D -m755 build/reprod-worker-cuda \
	    $(DESTDIR)$(PREFIX)/libexec/reprod/reprod-worker-cuda)
	install -D -m755 build/reprod-launch $(DESTDIR)$(PREFIX)/libexec/reprod/reprod-launch
	install -D -m755 build/libreprod-digest.so $(DESTDIR)$(PREFIX)/lib/reprod/libreprod-digest.so
	install -D -m644 -t $(DESTDIR)$(PREFIX)/share/reprod/python workloads/python/*.py

# Of the plain build: a sanitizer's has libraries of its own.
bundle: $(if $(FLAVOUR),,all)
	@$(if $(FLAVOUR),echo 'make bundle: without CC=clang and SAN=' >&2; exit 2,deploy/make-bundle \
	    --version $(VERSION) --out $(or $(OUT),$(B)) $(PROGRAMS) $(DIGEST_LIB))

clean:
	rm -rf build

.PHONY: all run bundle test soak bench fuzz fuzz-program detection gpu-check gpu-programs check check-unit check-system check-stacks \
        check-pytorch \
        build-tests lint format format-check \
        check-layers check-docs check-headers tidy cppcheck install clean deps-run deps-test FORCE
.SECONDARY: $(call obj,$(UNIT_SRC))
-include $(INSTRUMENTS_SRC:%=$(B)/pic/%.d)
-include $(patsubst %.c,$(B)/obj/%.c.d,$(DAEMON_SRC) $(WORKER_SRC) $(CUDA_C_SRC) $(UNIT_SRC) $(SELFTEST_SRC) $(LAUNCH_SRC) $(FUZZ_SRC) tests/fuzz/engine.c \
    tests/bench/ingest.c tests/bench/instruments.c)
-include $(patsubst %,$(B)/obj/%.d,$(CUDA_SRC) $(BANDWIDTH_SRC))
-include $(SIM_HEADER).d
-include $(patsubst %,$(B)/sim/%.d,$(CUDA_SRC) $(BANDWIDTH_SRC) $(SIM_SRC) $(SIM_SELFTEST_SRC) tests/simulator/test_cudasim.cpp)
