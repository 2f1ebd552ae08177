# The CUDA code compiled for a CPU (cudasim.h).  Not with ThreadSanitizer, which would see the
# races that kernels have on purpose, nor with clang: gcc's fibres are what is tested.

ifeq ($(findstring thread,$(SAN))$(CLANG),)
SIM_SRC    := $(sort $(filter-out tests/simulator/test_%,$(wildcard tests/simulator/*.cpp)))
SIM_SELFTEST_SRC := $(sort $(wildcard tests/simulator/*.cu))
SIM_FLEETS_SRC   := $(sort $(wildcard tests/fleets/*.cu))
LINKED_SRC += $(SIM_SRC) $(SIM_SELFTEST_SRC) $(SIM_FLEETS_SRC)
SIM_TESTS  := $(B)/tests/test_cudasim
SIMULATORS := $(addprefix $(B)/tests/,reprod-worker-cudasim reprod-worker-cudasim-selftest \
                reprod-worker-cudasim-fleets cudasim-bandwidth)
build-tests check-unit: $(SIM_TESTS)
build-system detection fleets: $(SIMULATORS)

# Half of the time goes into the simulator's C++ headers: they are read once.
SIM_HEADER := $(B)/sim/cudasim.h
$(SIM_HEADER).gch: tests/simulator/cudasim.h $(B)/cc.flags
	$(Q)echo "  CXX  $<"; mkdir -p $(@D); $(CXX) $(SIM_FLAGS) $(CFLAGS) $(WSANFLAGS) \
	    -MMD -MP -MF $(SIM_HEADER).d -o $@ -x c++-header $<
$(B)/sim/%.o: % $(SIM_HEADER).gch
	$(Q)echo "  CXX  $< (simulator)"; mkdir -p $(@D); $(CXX) $(SIM_FLAGS) $(CFLAGS) \
	    $(WSANFLAGS) -Winvalid-pch -include $(SIM_HEADER) -MMD -MP -c -o $@ -x c++ $<

# The object of a file for the simulator: $(call sim,FILE...)
sim = $(patsubst %,$(B)/sim/%.o,$(1))
SIM_LINK  = $(Q)mkdir -p $(@D); echo "  LD   $@"; $(CXX) $(CFLAGS) $(WSANFLAGS) -pie -fopenmp \
            -Wl,--build-id,--export-dynamic-symbol='cudasim_*' $(OBJECTS)
SIM_MAIN := $(call obj,workloads/worker/main.c)
$(B)/tests/reprod-worker-cudasim: $(SIM_MAIN) $(CUDA_LIB) $(call sim,$(CUDA_SRC) $(SIM_SRC)) \
        $(B)/link.flags
	$(SIM_LINK) -lm
$(B)/tests/reprod-worker-cudasim-selftest: $(SIM_MAIN) $(CUDA_LIB) \
        $(call sim,$(CUDA_WORKER_SRC) $(SIM_SRC) $(SIM_SELFTEST_SRC)) $(B)/link.flags
	$(SIM_LINK) -lm
$(B)/tests/reprod-worker-cudasim-fleets: $(SIM_MAIN) $(CUDA_LIB) \
        $(call sim,$(CUDA_WORKER_SRC) $(SIM_SRC) $(SIM_FLEETS_SRC)) $(B)/link.flags
	$(SIM_LINK) -lm
$(B)/tests/cudasim-bandwidth: $(CUDA_LIB) \
        $(call sim,tests/gpu/bandwidth.cu $(CUDA_WORKER_SRC) $(SIM_SRC)) $(B)/link.flags
	$(SIM_LINK) -lm
$(B)/tests/test_cudasim: $(CUDA_LIB) \
        $(call sim,tests/simulator/test_cudasim.cpp $(CUDA_WORKER_SRC) $(SIM_SRC)) $(B)/link.flags
	$(SIM_LINK) -lcmocka -lm

# What stands for libraries there, each in a folder of its own.  Never sanitized: a library is
# not.
imitation      = $(patsubst %,$(B)/pic/%.o,$(wildcard tests/fixtures/imitation/$(1)))
IMITATIONS    := $(addprefix $(B)/tests/imitations/,cudnn/libcudnn.so.9 \
                   cublas/libcublas.so.13 nccl/libnccl.so.2)
# Memory and streams of the simulator, for tests that call an imitation themselves.
SIM_MEMORY    := $(B)/tests/imitations/libmemory.so
build-system detection: $(IMITATIONS) $(SIM_MEMORY)
$(SIM_MEMORY): tests/simulator/cudart.cpp tests/simulator/cudart.h $(B)/cc.flags
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(CXX) $(SIM_FLAGS) $(CFLAGS) -fPIC -shared -o $@ $<
$(B)/tests/imitations/cudnn/libcudnn.so.9: $(call imitation,cudnn_*.c)
$(B)/tests/imitations/cublas/libcublas.so.13: $(call imitation,cublas.c)
$(B)/tests/imitations/nccl/libnccl.so.2: $(call imitation,nccl.c)
$(IMITATIONS):
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(CC) -shared -Wl,--build-id,-soname,$(@F) -o $@ \
	    $(OBJECTS) -lm
endif
# Kernels read the same bytes as words of several sizes, which a GPU's compiler allows.
SIM_FLAGS := -std=c++20 $(CXX_COMMON) -DREPROD_CUDASIM -ffp-contract=off -fno-strict-aliasing \
             -fPIE -fopenmp -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wno-unknown-pragmas \
             -Wno-missing-field-initializers $(if $(WERROR),-Werror)
