# Test programs, and how tests are run.  A unit test tests/unit/ROOM/test_x.c is the program
# build/tests/ROOM/test_x.

SELFTEST_SRC := $(call c_of,tests/selftest)
UNIT_SRC   := $(sort $(wildcard tests/unit/test_*.c tests/unit/*/test_*.c))
# WITHOUT= names rooms whose tests another flavour runs.
UNIT_SRC   := $(filter-out $(WITHOUT:%=tests/unit/%/%),$(UNIT_SRC))
# With ThreadSanitizer only where several threads are at work at a time: not where there is one, nor where
# each transaction is waited for; and what the worker has is not instrumented.
ifneq ($(findstring thread,$(SAN)),)
AT_A_TIME := $(foreach room,engine http peers process render webhooks,tests/unit/$(room)/%) \
    $(patsubst %,tests/unit/db/test_%.c,backup connection faults files lanes store store_open store_wakeups witness) \
    $(patsubst %,tests/unit/jobs/test_%.c,notices screener)
UNIT_SRC  := $(filter $(AT_A_TIME),$(UNIT_SRC))
endif
# Setups of all sizes: once, where AddressSanitizer looks at them.  Fleets that are drawn by the thousand: where
# they are quick.
UNIT_SRC  := $(filter-out tests/unit/$(if $(findstring address,$(SAN)),evidence/test_dissent.c,worker/test_size_bytes.c),$(UNIT_SRC))
# The longest first: what comes after it still runs at the same time as the system tests.
LONGEST    := $(filter %/test_workloads.c,$(UNIT_SRC))
TESTS      := $(patsubst tests/unit/%.c,$(B)/tests/%,$(LONGEST) $(filter-out $(LONGEST),$(UNIT_SRC)))
SELFTEST   := $(B)/tests/reprod-worker-selftest
FUZZ_SRC   := $(filter-out tests/fuzz/engine.c,$(call c_of,tests/fuzz))
LINKED_SRC += $(SELFTEST_SRC) $(FUZZ_SRC)
NVML_LIB   := $(call obj,$(call c_of,cuda/nvml) cuda/library/driver.c)
# Make removes what only pattern rules ask for, unless told not to.
.SECONDARY: $(call obj,$(UNIT_SRC)) $(NVML_LIB)

# -- Programs --------------------------------------------------------------------------------

$(SELFTEST): $(call obj,workloads/worker/main.c $(SELFTEST_SRC)) $(WORKER_LIB) $(B)/link.flags
	$(LINK) $(WSANFLAGS) -pie -fopenmp -Wl,--build-id $(OBJECTS) -lm

# A unit test gets all of the daemon, the worker and NVML; some want more.  There are two hundred:
# they are linked by what is quickest.
TEST_LINKER := $(firstword $(foreach l,lld gold,$(if $(shell command -v ld.$l),-fuse-ld=$l)))
$(B)/tests/%: $(call obj,tests/unit/%.c) $(DAEMON_LIB) $(WORKER_LIB) $(NVML_LIB) \
        $(B)/link.flags
	$(LINK) $(TEST_LINKER) $(SANFLAGS) -pie -fopenmp $(OBJECTS) $(PKG_LIBS) -lcmocka -lm -lpthread
$(B)/tests/cuda/test_conv_bound: $(call obj,cuda/cudnn/conv_bound.c)
$(B)/tests/cuda/test_conv_chosen: $(call obj,$(addprefix cuda/cudnn/,conv_algorithms.c conv_bound.c conv_chosen.c))

# The fuzz targets, with what they call beyond the daemon: run with their corpus by a unit
# test, and, in a flavour of its own, by libFuzzer.
FUZZ_LIB := $(call obj,$(FUZZ_SRC) cuda/library/elf.c cuda/library/ldcache.c)
$(B)/reprod-fuzz: $(call obj,workloads/checkpoint/file.c workloads/worker/emit.c) $(NVML_LIB)
$(B)/tests/test_fuzz: $(FUZZ_LIB)
$(B)/reprod-fuzz: $(call obj,tests/fuzz/engine.c) $(FUZZ_LIB) $(DAEMON_LIB) $(B)/link.flags
	$(LINK) $(SANFLAGS) -fsanitize=fuzzer -pie $(OBJECTS) $(PKG_LIBS) -lm -lpthread

# A driver's library that is told what to say, of today and of years ago.  Never sanitized: a
# driver's library is not.
FAKE_NVML := $(B)/tests/nvml/libnvidia-ml.so.1 $(B)/tests/nvml-old/libnvidia-ml.so.1
FAKE_NVML_SRC := $(call c_of,tests/fixtures/nvml)
$(B)/tests/nvml-old/libnvidia-ml.so.1: FAKE = -DFAKE_NVML_OLD
$(FAKE_NVML): $(FAKE_NVML_SRC) tests/fixtures/nvml/fake_nvml.h $(B)/cc.flags
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(CC) $(COMMON) $(CFLAGS) -fPIC $(FAKE) -shared \
	    -o $@ $(FAKE_NVML_SRC) -lpthread
$(B)/tests/cuda/test_nvml $(B)/tests/cuda/test_nvml_processes $(B)/tests/cuda/test_nvml_unusable: $(FAKE_NVML)

# Loads libraries as the CUDA worker does, without it.
ifeq ($(FLAVOUR),)
TRY_LIBRARIES := $(B)/tests/try-libraries
$(TRY_LIBRARIES): $(call obj,$(wildcard tests/fixtures/cudnn/try_*.c) \
        $(filter-out cuda/nvml/% cuda/cudnn/conv_%,$(CUDA_C_SRC)) \
        workloads/instruments/digest.c $(addprefix workloads/worker/,libraries.c emit.c \
        tensor.c)) $(B)/link.flags
	$(LINK) -pie -fopenmp $(OBJECTS)
endif

# Loaded before all others it makes calls fail.  Never sanitized.
FAULTS := $(B)/tests/faults.so
FAULTS_SRC := $(call c_of,tests/faults/preload)
$(FAULTS): $(FAULTS_SRC) tests/faults/preload/fault.h $(B)/cc.flags
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(CC) $(COMMON) -Wno-pedantic $(CFLAGS) -fPIC -shared \
	    -o $@ $(FAULTS_SRC)

# The command of fleets whose workload is external.  Never sanitized: it is anybody's.
FLEET_COMMAND := $(B)/tests/fleet-command
$(FLEET_COMMAND): tests/fleets/command.c $(B)/cc.flags
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(CC) $(COMMON) -Wno-pedantic $(CFLAGS) -o $@ $<

# Agents of a large fleet in one process, and how long a service takes to answer.  Never
# sanitized: they take a processor's time from what is measured.
SCALE := $(B)/tests/scale-player $(B)/tests/scale-probe
$(B)/tests/scale-player: tests/scale/recorded.c tests/scale/recorded.h
$(SCALE): $(B)/tests/scale-%: tests/scale/%.c $(B)/cc.flags
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(CC) $(COMMON) -Wno-pedantic $(CFLAGS) -o $@ $(filter %.c,$^)

BENCHES := $(B)/tests/bench-ingest $(B)/tests/bench-instruments
$(B)/tests/bench-ingest: $(call obj,tests/bench/ingest.c) $(DAEMON_LIB) $(B)/link.flags
$(B)/tests/bench-instruments: $(call obj,tests/bench/instruments.c $(INSTRUMENTS_SRC)) \
        $(B)/link.flags
$(BENCHES):
	$(LINK) $(SANFLAGS) -pie -fopenmp $(OBJECTS) $(PKG_LIBS) -lm -lpthread

# -- Two speeds ------------------------------------------------------------------------------

test: deps-test
	@tests/run-stages.sh everyday
test-deep: deps-test
	@tests/run-stages.sh deep

# The interpreter that has pytest: a machine may have several.
PYTHON = $(shell for p in python3 /usr/bin/python3; do \
             $$p -c 'import pytest, xdist' 2>/dev/null && echo $$p && break; done)
# How Python's tests are run, with more arguments of pytest in PYTEST.
RUN_PYTEST = REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) -m pytest -q -rs -c tests/pytest.ini \
             -p no:cacheprovider $(PYTEST)
# Half of the tests wait rather than work.
BESIDE = $(shell expr $$(nproc) \* 3 / 2)
# What the system tests use, in addition to what simulator.mk adds.
SYSTEM_USES := $(SELFTEST) $(FLEET_COMMAND) $(SCALE) $(BENCHES) $(TRY_LIBRARIES) $(BANDWIDTH) $(FAKE_NVML) $(FAULTS)
build-system: all $(SYSTEM_USES)
build-tests: build-system $(TESTS)
# The latter first: while its tests run, unit tests are built.
check: check-system check-unit
check-unit: all $(TESTS) $(SELFTEST)
	@REPROD_BUILD=$(B) PYTHON=$(PYTHON) tests/run-unit.sh $(TESTS) $(SIM_TESTS)
# Workers in Python write no bytecode: that of each run would be compiled anew.  So would each of pytest's processes
# compile all tests, with what it makes of their assertions, where the environment says that nobody writes any.
check-system: build-system
	@$(PYTHON) -m compileall -q workloads/frameworks workloads/python tests/fixtures/frameworks
	@MAKEFLAGS= PYTHONDONTWRITEBYTECODE= $(RUN_PYTEST) --collect-only -qq tests/system tests/web >/dev/null || true
	@MAKEFLAGS= $(RUN_PYTEST) -n $(BESIDE) --durations=15 tests/system tests/web

# -- On demand -------------------------------------------------------------------------------

# SIGKILL at 10,000 points (KILLS=, SEED=): half an hour.  What it found becomes a part of
# RELIABILITY.md.
KILLS ?= 10000
CAMPAIGNS := tests/reliability/results
soak: all $(SELFTEST) $(FAULTS)
	@REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) tests/faults/kills.py --kills $(KILLS) \
	    $(if $(SEED),--seed $(SEED)) --out $(CAMPAIGNS)/kills.json
# SIGKILL for the service, agents, runs, a real Slurm, a receiver and a peer, in any order, 200 times (KILLS=, SEED=): eight minutes.
outages: KILLS = 200
outages: all $(SELFTEST)
	@tests/get-slurm.sh $(SLURM_CACHE) || echo '  without Slurm: all hosts have launch commands'
	@REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) tests/outages/outage_campaign.py --kills $(KILLS) \
	    $(if $(SEED),--seed $(SEED)) --out $(CAMPAIGNS)/outages.json
# Each call of the service, its agent, a worker and a backup fails once (EACH=N: N of a kind).
EACH ?= 0
faults: all $(SELFTEST) $(FAULTS) $(B)/tests/db/test_faults
	@REPROD_FAULTS_ALL=1 $(B)/tests/db/test_faults
	@REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) tests/faults/sweep.py --each $(EACH) \
	    $(if $(SEED),--seed $(SEED)) --out $(CAMPAIGNS)/faults.json
detection: all $(SELFTEST)
	@REPROD_SURVEYS=20 REPROD_PROCESSES=200 REPROD_SCHEDULES=50 REPROD_LOCALISATIONS=20 \
	    $(RUN_PYTEST) -vv $(addprefix tests/system/test_,$(addsuffix .py,detection cudasim \
	    localise golden))
# Ratios of what ran in turns; BENCH='--quick', or names of benchmarks.
bench: all $(BENCHES) $(SELFTEST)
	@REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) tests/bench/bench.py $(BENCH)
# What is found is kept in build/fuzz; TARGETS= names some of tests/fuzz/corpus.
SECONDS_EACH ?= 60
FUZZ_FLAVOUR := CC=clang SAN=fuzzer-no-link,address,undefined CUDA=0
fuzz: deps-test
	@$(MAKE) --no-print-directory $(FUZZ_FLAVOUR) fuzz-program
	@tests/fuzz/run.sh build/clang-san-fuzzer-no-link-address-undefined/reprod-fuzz \
	    $(SECONDS_EACH) build/fuzz $(TARGETS); code=$$?; $(if $(TARGETS),,$(PYTHON) \
	    tests/reliability/keep_fuzz.py build/fuzz/results.tsv;) exit $$code
fuzz-program: $(B)/reprod-fuzz
# RELIABILITY.md, from what the campaigns left in $(CAMPAIGNS).
reliability:
	@python3 tests/reliability/make_reliability.py
reliability-tests: all $(SYSTEM_USES)
	@REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) tests/reliability/run_tests.py
# One wrong device of eight, in FLEETS fleets of each kind, through the real service: half an hour.
FLEETS ?= 1000
fleets: all $(FLEET_COMMAND)
	@REPROD_BUILD=$(CURDIR)/$(B) nice $(PYTHON) tests/fleets/fleet_campaign.py --fleets $(FLEETS) --seed $(or $(SEED),1) \
	    --result $(CAMPAIGNS)/fleets.json
# 500 hosts with 8 devices each, whose agents play recorded results: what the service makes of them, how
# fast, and whether each result is stored once.  Six minutes; a quiet machine gives the figures.
scale: all $(SCALE) $(B)/tests/bench-ingest
	@REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) tests/scale/scale.py --result $(CAMPAIGNS)/scale.json
left-alone: all
	@REPROD_BUILD=$(CURDIR)/$(B) nice $(PYTHON) tests/reliability/left_alone.py
large-database: all $(B)/tests/bench-ingest
	@REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) tests/reliability/large_database.py
# Small changes to what judges, each of which a unit test must notice.  MUTANTS=N of each file,
# or all; FILES= names some.
MUTANTS ?= 25
mutate: export MUTATE_CC = $(CC) $(COMMON) $(PKG_CFLAGS) -fopenmp
mutate: export MUTATE_LINK = $(CC) $(if $(shell command -v ld.lld),-fuse-ld=lld) \
    -Wl,--strip-debug -pie -fopenmp
mutate: export MUTATE_OBJECTS = $(DAEMON_LIB) $(WORKER_LIB) $(NVML_LIB)
mutate: export MUTATE_LIBS = $(PKG_LIBS) -lcmocka -lm -lpthread
mutate: all $(TESTS)
	@python3 tests/mutate/mutate.py --build $(B) --mutants $(MUTANTS) $(FILES)
# Real versions of cuDNN as stacks; downloads them.
check-stacks: all $(TRY_LIBRARIES)
	@$(RUN_PYTEST) -s tests/stacks
# Real versions of frameworks as stacks, installed into a cache of the user's, once: numpy, ONNX Runtime
# and JAX in two versions each (140 MB, 380 MB and 1.1 GB), TensorFlow (4.5 GB) and PyTorch (12 GB, of
# which 5.6 GB are downloaded) in three, and Inductor in two of these.  FRAMEWORKS='numpy=1.26.4,2.4.6 jax=' names
# others; RUNS=2,pytorch=5, ONLY='pytorch_index*', FRESH=1 (each run imports its framework itself), REPORT=FILE,
# WHEELS=FOLDER; JSON=FILE, written after each framework, and GO_ON='FILE FILE': not measured again.
FRAMEWORKS_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/reprod/frameworks
check-frameworks: all
	@REPROD_BUILD=$(CURDIR)/$(B) $(PYTHON) tests/frameworks/check_frameworks.py --cache $(FRAMEWORKS_CACHE) \
	    $(if $(RUNS),--runs $(RUNS)) $(if $(ONLY),--only '$(ONLY)') $(if $(REPORT),--report $(REPORT)) \
	    $(if $(WHEELS),--wheels $(WHEELS)) $(if $(FRESH),--fresh) $(if $(JSON),--json $(JSON)) \
	    $(GO_ON:%=--go-on %) $(FRAMEWORKS)
# The probes with PyTorch, JAX and numpy, which are installed into a cache of the user's, once.
PYTORCH_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/reprod/pytorch
check-pytorch: PYTHON = $(PYTORCH_CACHE)/bin/python
check-pytorch: $(INSTRUMENTS) $(DIGEST_LIB) $(PYTORCH_CACHE)/installed
	@$(RUN_PYTEST) $(addprefix tests/system/test_python_,$(addsuffix .py,instruments probe \
	    checkpoints pytorch examples jax ranks)) tests/system/test_gate_pytorch.py
# The probes with Keras, in each TensorFlow that check-frameworks left in its cache.
check-keras: $(DIGEST_LIB)
	@ls -d $(FRAMEWORKS_CACHE)/tensorflow-*/lib > /dev/null 2>&1 || { echo "no TensorFlow in $(FRAMEWORKS_CACHE):" \
	    "make check-frameworks FRAMEWORKS=tensorflow= installs some" >&2; exit 1; }
	@KERAS_CACHE=$(FRAMEWORKS_CACHE) $(RUN_PYTEST) tests/system/test_python_keras.py
# Real Prometheus and Alertmanager, with the rules of deploy/prometheus.  Where they are not installed, Debian's
# packages are unpacked into a cache of the user's (33 MB): installed, they would begin to serve.
export PROMETHEUS_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/reprod/prometheus
check-prometheus: all get-prometheus $(SELFTEST)
	@MAKEFLAGS= $(RUN_PYTEST) -s tests/system/test_prometheus.py tests/system/test_prometheus_rules.py \
	    tests/system/test_grafana.py
get-prometheus:
	@tests/get-prometheus.sh $(PROMETHEUS_CACHE)
	@tests/get-grafana-types.sh $(PROMETHEUS_CACHE) || echo "  skipped: the types of Grafana's dashboards"
# A real Slurm on this machine; likewise (3.5 MB).
export SLURM_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/reprod/slurm
check-slurm: all get-slurm $(SELFTEST)
	@MAKEFLAGS= $(RUN_PYTEST) -s tests/system/test_slurm.py
get-slurm:
	@tests/get-slurm.sh $(SLURM_CACHE)
$(PYTORCH_CACHE)/installed:
	@echo "  GET  torch into $(@D)"; mkdir -p $(@D); python3 -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet torch jax numpy pytest && touch $@

.PHONY: test test-deep build-system build-tests check check-unit check-system soak outages faults reliability reliability-tests left-alone \
        large-database fleets \
        detection bench fuzz \
        fuzz-program check-stacks check-frameworks check-pytorch check-keras check-prometheus get-prometheus check-slurm get-slurm \
        mutate
