# Which files a flavour compiles itself.  The others are compiled as without the sanitizer, or
# without counting: it borrows those objects (obj, in the Makefile), and has them brought up to
# date before anything of its own is looked at.

# Digests, verdicts, evidence and traces: of these every branch must be taken.
COVERED := $(addprefix workloads/instruments/,digest.c digest_parallel.c exact_sum.c \
             exact_sum_bins.c) $(call c_of,daemon/evidence) \
           $(addprefix daemon/jobs/,case.c check.c options.c outcome.c) \
           daemon/run/run_event.c $(sort $(wildcard daemon/run/run_judge*.c)) \
           $(sort $(wildcard db/cells*.c)) db/dissent/settle.c db/dissent/unsettled.c \
           db/inputs.c $(sort $(wildcard db/upkeep/recompute*.c)) \
           db/upkeep/rebuild.c db/upkeep/infinite.c $(call c_of,daemon/trace)
# What is shown beside them.
COVERED_BESIDE := $(filter-out $(COVERED),$(call c_of,daemon/jobs)) \
                  daemon/run/run_captures.c $(call c_of,db/cases) \
                  $(filter-out db/dissent/settle.c db/dissent/unsettled.c,$(call c_of,db/dissent))
COUNTED_SRC := $(COVERED) $(COVERED_BESIDE)

ifneq ($(COVERAGE),)
BORROWED := %.c
OWN      := $(COUNTED_SRC)
else ifneq ($(findstring thread,$(SAN)),)
BORROWED := $(addsuffix /%.c,workloads cuda tests/selftest tests/fixtures)
# The sanitizer has a heap of its own.
OWN      := workloads/worker/heap.c
endif

ifneq ($(BORROWED),)
LENDER := build$(if $(CLANG),/clang)
# Never made: a part of the Makefile that may be missing is what make looks after first.
ifeq ($(filter clean,$(MAKECMDGOALS)),)
-include $(B)/borrowed.mk
$(B)/borrowed.mk: FORCE
	@$(MAKE) --no-print-directory SAN= COVERAGE= CFLAGS="-O2 -g" lend LENT="$(sort $(filter \
	    $(LENDER)/obj/%,$(call obj,$(LINKED_SRC) $(CUDA_C_SRC) $(if $(COVERAGE),$(UNIT_SRC)))))"
endif
endif
lend: $(LENT)
	@:
.PHONY: lend
