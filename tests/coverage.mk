# make coverage: whether unit tests take every branch of the code that judges
# (tests/reliability/coverage.py).  It has a flavour of its own, build/clang-coverage.

# Digests, verdicts, evidence and traces: of these every branch must be taken.
COVERED := $(addprefix workloads/instruments/,digest.c digest_parallel.c exact_sum.c \
             exact_sum_bins.c) $(call c_of,daemon/evidence) \
           $(addprefix daemon/jobs/,case.c check.c options.c outcome.c) \
           daemon/run/run_event.c $(sort $(wildcard daemon/run/run_judge*.c)) \
           $(sort $(wildcard db/cells*.c)) db/inputs.c $(sort $(wildcard db/upkeep/recompute*.c)) \
           db/upkeep/rebuild.c db/upkeep/infinite.c $(call c_of,daemon/trace)
# What is shown beside them.
COVERED_BESIDE := $(filter-out $(COVERED),$(call c_of,daemon/jobs)) \
                  daemon/run/run_captures.c $(call c_of,db/cases) \
                  $(call c_of,db/dissent)
# The rooms whose unit tests are of these files.
COVERING := $(filter $(addprefix $(B)/tests/,db/% evidence/% instruments/% jobs/% run/% \
              trace/%),$(TESTS))
COVERAGE_RESULT ?= tests/reliability/results/coverage.json

ifneq ($(COVERAGE),)
COUNTED := -fprofile-instr-generate -fcoverage-mapping
LDFLAGS += -fprofile-instr-generate
# Exact where threads share a counter: the store has threads of its own.
$(call obj,$(COVERED) $(COVERED_BESIDE)): FLAGS += $(COUNTED)
$(call obj,$(COVERED) $(COVERED_BESIDE)): $(B)/counted.flags
$(B)/counted.flags: export STAMP = $(COUNTED) $(COVERED) $(COVERED_BESIDE)
$(call obj,$(filter db/%,$(COVERED))): FLAGS += -fprofile-update=atomic
endif

# OMP_THREAD_LIMIT: digests by one thread, so that their counters, too, are exact.
coverage: deps-test
	@$(MAKE) --no-print-directory CC=clang COVERAGE=1 SAN= coverage-run
coverage-run: $(COVERING)
	@OMP_THREAD_LIMIT=1 REPROD_BUILD=$(B) tests/reliability/coverage.py --cc $(CC) \
	    --core $(COVERED) --beside $(COVERED_BESIDE) --tests $(COVERING) \
	    --result "$(COVERAGE_RESULT)"

.PHONY: coverage coverage-run
