# make coverage: whether unit tests take every branch of the code that judges
# (tests/reliability/coverage.py).  It has a flavour of its own, build/clang-coverage.

# The rooms whose unit tests are of these files.
COVERING := $(filter $(addprefix $(B)/tests/,db/% evidence/% instruments/% jobs/% run/% \
              trace/%),$(TESTS))
COVERAGE_RESULT ?= tests/reliability/results/coverage.json

ifneq ($(COVERAGE),)
COUNTED := -fprofile-instr-generate -fcoverage-mapping
LDFLAGS += -fprofile-instr-generate
# Exact where threads share a counter: the store has threads of its own.
$(call obj,$(COUNTED_SRC)): FLAGS += $(COUNTED)
$(call obj,$(COUNTED_SRC)): $(B)/counted.flags
$(B)/counted.flags: export STAMP = $(COUNTED) $(COUNTED_SRC)
$(call obj,$(filter db/%,$(COVERED))): FLAGS += -fprofile-update=atomic
endif

# OMP_THREAD_LIMIT: digests by one thread, so that their counters, too, are exact.
# REPROD_TEST_MOST: of what tests draw at random, they try most here.
coverage: deps-test
	@$(MAKE) --no-print-directory CC=clang COVERAGE=1 SAN= coverage-run
coverage-run: $(COVERING)
	@OMP_THREAD_LIMIT=1 REPROD_TEST_MOST=1 REPROD_BUILD=$(B) tests/reliability/coverage.py --cc $(CC) \
	    --core $(COVERED) --beside $(COVERED_BESIDE) --tests $(COVERING) \
	    --result "$(COVERAGE_RESULT)"

.PHONY: coverage coverage-run
