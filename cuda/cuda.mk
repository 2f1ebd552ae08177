# reprod-worker-cuda: the CUDA files through nvcc, and the worker's C files with them.
# It is for the plain build: sanitizers see the kernels on the simulator.

CUDA_SRC   := $(sort $(wildcard cuda/*.cu cuda/*/*.cu))
CUDA_C_SRC := $(call c_of,cuda/*)
CUDA_WORKER_SRC := $(filter cuda/worker/%,$(CUDA_SRC))
# What only the CPU backend needs.  The CPU's workloads stay: they define the operations.
CPU_ONLY   := workloads/worker/backend_cpu.c
CUDA_LIB   := $(call obj,$(CUDA_C_SRC) $(filter-out $(MAINS) $(CPU_ONLY),$(WORKER_SRC)))
LINKED_SRC += $(CUDA_SRC) $(CUDA_C_SRC)
CXX_COMMON := -D_GNU_SOURCE -I. -DREPROD_VERSION='"$(VERSION)"'

ifeq ($(CUDA)$(FLAVOUR),1)
PROGRAMS += $(B)/reprod-worker-cuda
all: $(B)/reprod-worker-cuda

# GPU code for every architecture that is served and the compiler knows, PTX of the newest for
# those to come, and of the oldest for those in between.  CUDA 13 no longer knows 7.0.  No
# contraction into FMA, as everywhere.
NVCC_KNOWN := $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code))
NVCC_ARCHS ?= $(filter 70 75 80 86 89 90 100 120,$(NVCC_KNOWN))
NVCC_LAST    := $(lastword $(NVCC_ARCHS))
NVCC_FIRST   := $(filter-out $(NVCC_LAST),$(firstword $(NVCC_ARCHS)))
NVCC_GENCODE := $(foreach a,$(NVCC_FIRST), \
                    -gencode arch=compute_$a,code=[sm_$a,compute_$a]) \
                $(foreach a,$(filter-out $(NVCC_FIRST) $(NVCC_LAST),$(NVCC_ARCHS)), \
                    -gencode arch=compute_$a,code=sm_$a) \
                -gencode arch=compute_$(NVCC_LAST),code=[sm_$(NVCC_LAST),compute_$(NVCC_LAST)]
# C++14 is all that a C-like subset needs; the headers of later standards take a third longer.
NVCC_COMPILE := -std=c++14 $(CXX_COMMON) -O2 -lineinfo -fmad=false -ccbin $(CXX) \
                -Xcompiler -fPIE,-ffp-contract=off,-fopenmp \
                -Xcompiler -Wall,-Wextra,-Wshadow,-Wno-missing-field-initializers \
                $(if $(WERROR),-Werror all-warnings)
NVCC_FLAGS   := $(NVCC_COMPILE) $(NVCC_GENCODE)

$(B)/obj/%.cu.o: %.cu $(B)/nvcc.flags
	$(Q)echo "  NVCC $<"; mkdir -p $(@D); \
	    $(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
$(B)/nvcc.flags: export STAMP = $(NVCC) $(NVCC_FLAGS)

# The CUDA run-time library is static, the other libraries of CUDA are loaded by the run:
# the program starts, and says what is missing, on a machine that has none of them.
NVCC_LINK = $(Q)mkdir -p $(@D); echo "  LD   $@"; $(NVCC) -ccbin $(CXX) -cudart static -o $@ \
            $(filter %.o,$^) -Xcompiler -pie,-fopenmp,-static-libstdc++,-static-libgcc
$(B)/reprod-worker-cuda: $(call obj,workloads/worker/main.c $(CUDA_SRC)) $(CUDA_LIB) \
        $(B)/link.flags
	$(NVCC_LINK) -Xlinker --build-id,$(WORKER_RPATH) -lm

# How fast a device reads and copies: for make gpu-check.
BANDWIDTH := $(B)/tests/gpu-bandwidth
$(BANDWIDTH): $(call obj,tests/gpu/bandwidth.cu $(CUDA_WORKER_SRC)) $(CUDA_LIB) $(B)/link.flags
	$(NVCC_LINK) -lm
endif

# On a machine with a GPU: needs gcc, g++, nvcc and Python, and none of the daemon's libraries.
# The check builds them itself: its deadline includes that.
gpu-check:
	@python3 tests/gpu/check.py --build '$(MAKE)' --nvcc '$(NVCC)' --out '$(OUT)' $(GPUCHECK)
gpu-programs: $(B)/reprod-worker $(B)/reprod-worker-cuda $(BANDWIDTH)
.PHONY: gpu-check gpu-programs
