# reprod: build, test and install.  Plain GNU make, no configure step.
#
#   make run       install what is missing, build, serve on 127.0.0.1:7357, fill the matrix
#   make test      install what is missing, run the tests of everyday work: 8 minutes
#   make test-deep the rest: clang, sanitizers, long tests
#   make           build everything into build/
#   make check     unit and system tests of this flavour only
#   make check-stacks  real versions of cuDNN side by side; downloads 1.5 GB
#   make check-pytorch the probes and the example with PyTorch; downloads 3 GB, once
#   make check-slurm      a real Slurm of three nodes on this machine: one dies, one is drained, a job is preempted; 3.5 MB, once
#   make check-prometheus  real Prometheus and Alertmanager: an alert, and its end; downloads 33 MB, once
#   make check-keras   the probes with each TensorFlow that check-frameworks installed
#   make soak      SIGKILL at 10,000 points of the service, its agent, workers and backups
#   make outages   SIGKILL for the service, hosts, a real Slurm, a receiver and a peer, in any order (KILLS=200, SEED=)
#   make faults    each call that can fail fails once, in every process (EACH=N of a kind)
#   make reliability  RELIABILITY.md from what the campaigns found: soak, outages, faults, fuzz, coverage, and
#                  make reliability-tests
#   make fleets    3,000 seeded fleets of eight devices, one of them wrong, through the real service: fake
#                  agents, commands, simulated devices (FLEETS=1000 of each, SEED=1)
#   make scale     500 hosts of eight devices with recorded results, through the real service: six minutes
#   make left-alone   ten minutes of background evidence: bounds, ages, budget
#   make large-database   how long two million runs take to check
#   make bench     how fast it is, next to peers on this machine: a table and build/bench/*.json
#   make fuzz      libFuzzer on everything that reads bytes from outside (SECONDS_EACH=60)
#   make mutate    small changes to what judges, each of which a unit test must notice: a
#                  sample of each file (MUTANTS=25; all), FILES="db/cells.c ..."
#   make coverage  which branches of what judges no unit test takes; none may be left
#   make gpu-check everything that only a GPU can show; exit status 77 where there is none
#   make check-ptx nvcc's PTX of every variant that needs no library, executed on a CPU: 40 minutes
#   make detection every control twenty times, every other variant in 200 processes, and the
#                  digests of sizes that take long
#   make lint      formatting, layers, headers, clang-tidy, cppcheck (LINT=quick: no analyzer)
#   make format    formats the sources
#   make install   PREFIX=/usr/local DESTDIR=
#   make bundle    one folder, and a .tar.gz of it, for machines that have nothing but glibc
#   make clean
#
#   CC=clang                     another compiler, in its own build folder
#   SAN=address|undefined|thread sanitizers (a comma list), in their own build folder
#   CUDA=0                       leave CUDA out although nvcc is there
#   NVCC_ARCHS="90"              GPU architectures; default: all that are served
#   WERROR=1                     warnings are errors (set by CI and by the tests)
#   V=1                          show commands
#
# This file has the settings, how one file is compiled, and the programs for a CPU.  The
# rest lies in the folders of what it builds, and uses what is defined here:
#
#   cuda/cuda.mk                 the worker for GPUs
#   tests/flavours.mk            which objects a flavour takes from another
#   tests/tests.mk               test programs, and how tests are run
#   tests/coverage.mk            which branches the unit tests take
#   tests/simulator/simulator.mk the CUDA code for the simulator
#   tests/ptx/ptx.mk             the PTX that nvcc wrote of it, executed on a CPU
#   tests/lint.mk                checks of the sources
#   deploy/deploy.mk             run, install, bundle
.DEFAULT_GOAL := all
ifeq ($(origin CC),default)
CC := gcc
endif
CLANG := $(findstring clang,$(CC))
ifeq ($(origin CXX),default)
CXX := $(if $(CLANG),clang++,g++)
endif
NVCC   ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA   ?= $(if $(NVCC),1,0)
PREFIX ?= /usr/local
CFLAGS ?= -O2 -g
WERROR ?= $(if $(CI),1)
Q      := $(if $(V),,@)
comma  := ,
space  := $(subst ,, )

# Each compiler and each set of sanitizers, a flavour, has a build folder of its own:
#   build/   build/clang/   build/san-address-undefined/   build/clang-san-address/
SAN_NAME := $(if $(SAN),san-$(subst $(comma),-,$(SAN)))
FLAVOUR  := $(subst $(space),-,$(strip $(CLANG) $(SAN_NAME) $(if $(COVERAGE),coverage)))
B        := $(if $(FLAVOUR),build/$(FLAVOUR),build)

# -- Flags ---------------------------------------------------------------------------------

VERSION := $(shell cat VERSION)
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
        -Wold-style-definition -Wwrite-strings -Wpointer-arith -Wvla -Wundef -Wformat=2 \
        $(if $(CLANG),-Wno-gnu-folding-constant) $(if $(WERROR),-Werror)
# Bits are the product: no contraction into FMA, no fast-math, no -march.  Where a file has
# code for a newer instruction set it chooses at run time, and the bits are the same.
NUMERICS := -ffp-contract=off
# REPROD_HEAP: workloads/worker/heap.c is in.  The sanitizers have a heap of their own.
COMMON   := -std=c17 -D_GNU_SOURCE -I. $(NUMERICS) $(WARN) -include daemon/base/banned.h \
            -fno-common -fPIE -DREPROD_VERSION='"$(VERSION)"' $(if $(SAN),,-DREPROD_HEAP)
# Empty where they are not installed yet: what includes them then says which is missing.
PKGS       := libuv libmicrohttpd gnutls jansson sqlite3 zlib
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
# ThreadSanitizer does not understand OpenMP run-time libraries, so the worker (which races
# on purpose) stays out of it; daemon, agent and unit tests of their code are in.
SANFLAGS  := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
WSANFLAGS := $(if $(findstring thread,$(SAN)),,$(SANFLAGS))
# Libraries that came along (make bundle) are found next to the program, before those of
# LD_LIBRARY_PATH and by libraries too: so DT_RPATH, which DT_RUNPATH is not.  The worker has
# a folder of its own, since what it loads under test must not find the daemon's.
# The loader replaces $ORIGIN; `$$` is make's `$`, and the quotes keep it from the shell.
RPATH        := --disable-new-dtags,-rpath,'$$ORIGIN/lib'
WORKER_RPATH := --disable-new-dtags,-rpath,'$$ORIGIN/lib/worker'

# -- Files: whole folders, so that a new file needs no line here -----------------------------

# All .c of a folder: $(call c_of,FOLDER...)
c_of = $(sort $(wildcard $(addsuffix /*.c,$(1))))
# The object of a source or of an embedded file: $(call obj,FILE...)
obj  = $(foreach f,$(1),$(call folder_of,$(f))/obj/$(f).o)
# A flavour takes the objects of BORROWED, but those of OWN, from the flavour in LENDER, which
# compiles them alike.
folder_of = $(if $(filter $(BORROWED),$(filter-out $(OWN),$(1))),$(LENDER),$(B))

include tests/flavours.mk

INSTRUMENTS_SRC := $(call c_of,workloads/instruments)
LAUNCH_SRC := daemon/agent/launch_main.c
MAINS      := daemon/main.c workloads/worker/main.c $(LAUNCH_SRC)
DAEMON_SRC := $(call c_of,daemon daemon/* api api/* db db/*) workloads/instruments/digest.c
# What the worker needs of daemon/base: libc only.
WORKER_BASE := daemon/base/nearest.c daemon/base/reference.c
WORKER_SRC := $(call c_of,workloads workloads/*) $(WORKER_BASE)
EMBEDDED   := $(sort $(wildcard web/*.* db/schema.sql db/migrations/*.sql workloads/profiles/*.json \
                api/openapi.json tests/gpu/results/*.json tests/gpu/reshaped.json tests/ptx/results.json))
DAEMON_LIB := $(call obj,$(filter-out $(MAINS),$(DAEMON_SRC)) $(EMBEDDED))
WORKER_LIB := $(call obj,$(filter-out $(MAINS),$(WORKER_SRC)))
INSTRUMENTS := $(B)/libreprod-instruments.so
DIGEST_LIB  := $(B)/libreprod-digest.so
PROGRAMS    := $(B)/reprod $(B)/reprod-worker $(B)/reprod-launch

# -- Programs --------------------------------------------------------------------------------

all: $(PROGRAMS) $(INSTRUMENTS) $(DIGEST_LIB)

# A link is `$(LINK) flags $(OBJECTS) libraries`: the objects among the prerequisites.
LINK    = $(Q)mkdir -p $(@D); echo "  LD   $@"; $(CC) $(CFLAGS)
OBJECTS = $(LDFLAGS) -o $@ $(filter %.o,$^)

$(B)/reprod: $(call obj,daemon/main.c) $(DAEMON_LIB) $(B)/link.flags
	$(LINK) $(SANFLAGS) -pie -Wl,$(RPATH) $(OBJECTS) $(PKG_LIBS) -lm -lpthread
$(B)/reprod-worker: $(call obj,workloads/worker/main.c) $(WORKER_LIB) $(B)/link.flags
	$(LINK) $(WSANFLAGS) -pie -fopenmp -Wl,--build-id -Wl,$(WORKER_RPATH) $(OBJECTS) -lm
# Static, so that setting limits and executing costs no dynamic linking.
$(B)/reprod-launch: $(call obj,$(LAUNCH_SRC)) $(B)/link.flags
	$(LINK) -static-pie $(OBJECTS)
# Digest and exact sums for other languages.  Never sanitized: it is loaded into Python.
$(INSTRUMENTS): $(INSTRUMENTS_SRC:%=$(B)/pic/%.o) $(B)/link.flags
	$(LINK) -shared -fopenmp $(OBJECTS)
# The same for programs under observation: it brings no OpenMP of its own into them.
$(DIGEST_LIB): $(patsubst %,$(B)/pic/%.o,$(filter-out %_parallel.c,$(INSTRUMENTS_SRC))) \
        $(B)/link.flags
	$(LINK) -shared -Wl,-z,defs $(OBJECTS)

# -- One file --------------------------------------------------------------------------------

# What a file is compiled with in addition to COMMON.  Of the patterns that match, the longest counts.
$(B)/obj/%.o: FLAGS = $(SANFLAGS) $(PKG_CFLAGS)
$(call obj,$(WORKER_BASE)): FLAGS = $(WSANFLAGS)
$(B)/obj/workloads/%.c.o: FLAGS = $(WSANFLAGS) -fopenmp
$(B)/obj/cuda/%.c.o: FLAGS = $(WSANFLAGS) -fopenmp
# They ask, and do not compute.
$(B)/obj/tests/unit/%.c.o: FLAGS = $(SANFLAGS) $(PKG_CFLAGS) $(if $(SAN),-O1,-O0)
$(B)/obj/tests/selftest/%.c.o: FLAGS = $(WSANFLAGS) -fopenmp
$(B)/obj/tests/fixtures/%.c.o: FLAGS = $(WSANFLAGS) -fopenmp
$(B)/obj/tests/bench/%.c.o: FLAGS = $(WSANFLAGS) $(PKG_CFLAGS) -fopenmp
$(B)/obj/$(LAUNCH_SRC).o: FLAGS =

$(B)/obj/%.c.o: %.c $(B)/cc.flags
	$(Q)echo "  CC   $<"; mkdir -p $(@D); \
	    $(CC) $(CPPFLAGS) $(COMMON) $(CFLAGS) $(FLAGS) -MMD -MP -c -o $@ $<
$(B)/pic/%.c.o: %.c $(B)/cc.flags
	$(Q)echo "  CC   $< (pic)"; mkdir -p $(@D); \
	    $(CC) $(CPPFLAGS) $(COMMON) $(CFLAGS) -fPIC -fopenmp -MMD -MP -c -o $@ $<
# Web pages, migrations and other data: one object each (daemon/base/embed.h).
$(call obj,$(EMBEDDED)): $(B)/obj/%.o: % daemon/base/embed.S
	$(Q)mkdir -p $(@D); $(CC) -DEMBEDDED_FILE='"$<"' -c -o $@ daemon/base/embed.S

# -- Stamps ----------------------------------------------------------------------------------

# A changed flag must rebuild and a removed source must relink, and neither touches a
# timestamp.  So each list is kept in a file that is written only when the list changes;
# what depends on the list depends on the file.  The list goes through the environment,
# where nothing in it can be taken for a quote of the shell.
$(B)/cc.flags:   export STAMP = $(CC) $(CPPFLAGS) $(COMMON) $(CFLAGS) $(SANFLAGS)
$(B)/link.flags: export STAMP = $(CC) $(LDFLAGS) $(RPATH) $(LINKED_SRC)
$(B)/%.flags: FORCE
	@mkdir -p $(@D); printf '%s\n' "$$STAMP" | cmp -s - $@ || printf '%s\n' "$$STAMP" >$@
# The parts add theirs.
LINKED_SRC = $(DAEMON_SRC) $(WORKER_SRC) $(EMBEDDED)

include cuda/cuda.mk tests/tests.mk tests/coverage.mk tests/simulator/simulator.mk tests/ptx/ptx.mk \
        tests/lint.mk deploy/deploy.mk

clean:
	rm -rf build

.PHONY: all clean FORCE
# Headers that objects were made from, as the compilers wrote them.
-include $(shell find $(addprefix $(B)/,obj pic sim ptx) -name '*.d' 2>/dev/null)
