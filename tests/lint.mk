# make lint: everything that is read, not run.  Each file that passed has an empty .ok in the
# build folder, newer than it.

C_FOLDERS := daemon daemon/* api api/* db db/* workloads workloads/* cuda cuda/* tests/unit \
             tests/unit/* tests/fuzz tests/bench tests/selftest tests/simulator tests/gpu \
             tests/fixtures/* tests/faults/preload tests/fleets tests/ptx
C_FILES   := $(sort $(foreach kind,c h cu cpp,$(wildcard $(addsuffix /*.$(kind),$(C_FOLDERS)))))
# Headers in C++'s part of the repository; the others are C.
CXX_HEADERS := $(wildcard $(addsuffix /*.h,cuda/kernels cuda/worker tests/simulator \
                 tests/fixtures/abi))
# One is of CUDA's, which need not be there.
HEADERS   := $(filter-out $(CXX_HEADERS) tests/ptx/cudart.h,$(filter %.h,$(C_FILES)))

lint: format-check check-layers check-dialect check-docs check-headers tidy cppcheck
format-check:
	@clang-format --dry-run --Werror $(C_FILES)
format:
	@clang-format -i $(C_FILES)
check-layers:
	@tests/check_layers.py
check-dialect:
	@tests/check_dialect.py
check-docs:
	@tests/check-docs.sh

# Every header compiles by itself.
check-headers: $(HEADERS:%=$(B)/headers/%.ok) $(CXX_HEADERS:%=$(B)/headers/%.ok)
$(CXX_HEADERS:%=$(B)/headers/%.ok): $(B)/headers/%.ok: %
	@mkdir -p $(@D); $(CXX) $(SIM_FLAGS) -Werror -fsyntax-only -x c++ $< && touch $@
$(HEADERS:%=$(B)/headers/%.ok): $(B)/headers/%.ok: %
	@mkdir -p $(@D); \
	    $(CC) $(COMMON) $(PKG_CFLAGS) -fopenmp -Werror -fsyntax-only -x c $< && touch $@

# The analyzer walks paths: a second a file, and minutes in nested loops over arrays, which
# it never sees here: the sanitizers see workloads run.
QUICK    := $(filter quick,$(LINT))
TIDY_SRC := $(sort $(DAEMON_SRC) $(WORKER_SRC) $(call c_of,cuda/nvml))
TIDY     := $(TIDY_SRC:%=$(B)/tidy$(QUICK)/%.ok)
NO_ANALYZER = $(if $(QUICK)$(filter workloads/,$(dir $<)),--checks=-clang-analyzer-*)
tidy: $(TIDY)
$(TIDY): $(B)/tidy$(QUICK)/%.ok: % .clang-tidy
	$(Q)echo "  TIDY $<"; mkdir -p $(@D); clang-tidy --quiet $(NO_ANALYZER) $< -- -std=c17 \
	    -D_GNU_SOURCE -I. $(PKG_CFLAGS) -DREPROD_VERSION='""' \
	    $(if $(filter workloads/%,$<),-fopenmp) 2>/dev/null && touch $@
cppcheck:
	@cppcheck --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr \
	    --suppress=missingIncludeSystem -j2 -I. -D_GNU_SOURCE -D__cppcheck__ --std=c11 \
	    daemon api db workloads/worker workloads/instruments

.PHONY: lint format-check format check-layers check-dialect check-docs check-headers tidy cppcheck
