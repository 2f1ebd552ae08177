# make run on this machine, and what other machines get: make install, make bundle.

deps-run:
	@deploy/install-deps.sh run
deps-test:
	@deploy/install-deps.sh test

# Code for this machine's GPUs, or portable code where there is none: for all architectures
# it takes minutes.  Unless NVCC_ARCHS was given.
GPU_ARCHS = $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | \
              tr -d . | grep -xE '[0-9]+' | sort -nu)
RUN_ARCHS = $(if $(filter-out file undefined,$(origin NVCC_ARCHS)),$(NVCC_ARCHS),$(or \
              $(filter $(NVCC_KNOWN),$(GPU_ARCHS)),75))
run: deps-run
	@$(MAKE) --no-print-directory all NVCC_ARCHS="$(RUN_ARCHS)"
	@exec build/reprod serve $(RUNFLAGS)

PREFIX_DIR = $(DESTDIR)$(PREFIX)
WORKERS    = $(filter %/reprod-worker %/reprod-worker-cuda %/reprod-launch,$(PROGRAMS))
install: all
	install -D -m755 -t $(PREFIX_DIR)/bin $(B)/reprod
	install -D -m755 -t $(PREFIX_DIR)/libexec/reprod $(WORKERS)
	install -D -m755 -t $(PREFIX_DIR)/lib/reprod $(DIGEST_LIB)
	install -D -m644 -t $(PREFIX_DIR)/share/reprod/python workloads/python/*.py
	install -D -m644 -t $(PREFIX_DIR)/share/reprod/frameworks workloads/frameworks/*.py
	install -D -m755 -t $(PREFIX_DIR)/share/reprod deploy/framework deploy/node-check
	install -D -m644 -t $(PREFIX_DIR)/share/reprod deploy/stacks.py
	install -D -m755 -t $(PREFIX_DIR)/share/reprod/slurm deploy/slurm/prolog deploy/slurm/health-check
	install -D -m644 -t $(PREFIX_DIR)/share/reprod/prometheus $(wildcard deploy/prometheus/*)
	install -D -m644 -t $(PREFIX_DIR)/share/reprod/kubernetes $(wildcard deploy/kubernetes/*)

# Of the plain build: a sanitizer's has libraries of its own.
ifeq ($(FLAVOUR),)
bundle: all
	@deploy/make-bundle --version $(VERSION) --out $(or $(OUT),$(B)) $(PROGRAMS) $(DIGEST_LIB)
else
bundle:
	@echo 'make bundle: without CC=clang and SAN=' >&2; exit 2
endif

.PHONY: deps-run deps-test run install bundle
