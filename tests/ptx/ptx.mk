# reprod-worker-ptx: the objects of reprod-worker-cuda, with kernels that were translated from the
# PTX that nvcc wrote, and a stand-in for CUDA's run-time library (README.md).  A test tool: it is in
# no bundle and no package.

ifeq ($(CUDA)$(FLAVOUR),1)
# One architecture: the one whose PTX is in the fat binary.
PTX_NAMES   := $(patsubst %.cu,%,$(CUDA_SRC))
PTX_FILES   := $(PTX_NAMES:%=$(B)/ptx/%.ptx)
PTX_RUNTIME := $(patsubst %,$(B)/ptx/%.o,$(filter-out tests/ptx/test_%,$(call c_of,tests/ptx)) \
                 tests/simulator/fiber.cpp)
PTX_PYTHON  := $(addprefix tests/ptx/,parse.py opcodes.py emit.py translate.py)
PTX_TRANSLATE := tests/ptx/translate.py
PTX_WORKER  := $(B)/tests/reprod-worker-ptx
LINKED_SRC  += $(PTX_RUNTIME)
.SECONDARY: $(PTX_FILES) $(PTX_FILES:=.c)
# The name of a file in C: $(call ptx_name,cuda/worker/fill)
ptx_name = $(subst /,__,$(1))
# Kernels keep their bits with the flags that the simulator has; what is generated gets no warnings.
PTX_CFLAGS  := -std=gnu17 -I. -O1 -ffp-contract=off -frounding-math -fno-strict-aliasing -fwrapv -fPIE

$(B)/ptx/%.ptx: %.cu $(B)/nvcc.flags
	$(Q)echo "  NVCC $< (PTX)"; mkdir -p $(@D); $(NVCC) $(NVCC_COMPILE) -arch=compute_$(NVCC_LAST) \
	    -MMD -MP -MF $@.d -MT $@ -ptx -o $@ $<
$(B)/ptx/%.ptx.c: $(B)/ptx/%.ptx $(PTX_PYTHON)
	$(Q)python3 $(PTX_TRANSLATE) kernels $(call ptx_name,$*) $< >$@.new && mv $@.new $@
$(B)/ptx/%.ptx.o: $(B)/ptx/%.ptx.c tests/ptx/ptx.h tests/ptx/arith.h
	$(Q)echo "  CC   $<"; $(CC) $(PTX_CFLAGS) -w -c -o $@ $<
$(B)/ptx/modules.c: $(PTX_NAMES:%=$(B)/obj/%.cu.o) $(PTX_PYTHON)
	$(Q)mkdir -p $(@D); python3 $(PTX_TRANSLATE) modules \
	    $(foreach n,$(PTX_NAMES),$(call ptx_name,$n)=$(B)/obj/$n.cu.o) >$@.new && mv $@.new $@
$(B)/ptx/modules.o: $(B)/ptx/modules.c tests/ptx/ptx.h tests/ptx/arith.h
	$(Q)$(CC) $(PTX_CFLAGS) -c -o $@ $<
$(B)/ptx/%.c.o: %.c $(B)/cc.flags
	$(Q)echo "  CC   $< (PTX)"; mkdir -p $(@D); $(CC) $(PTX_CFLAGS) -O2 -g $(WARN) \
	    -isystem $(dir $(NVCC))../include -isystem /usr/local/cuda/include -MMD -MP -c -o $@ $<
$(B)/ptx/%.cpp.o: %.cpp $(B)/cc.flags
	$(Q)echo "  CXX  $< (PTX)"; mkdir -p $(@D); $(CXX) -std=c++20 -I. -O2 -g -fPIE -MMD -MP -c -o $@ $<

PTX_OBJECTS := $(call obj,workloads/worker/main.c $(CUDA_SRC)) $(CUDA_LIB) $(PTX_NAMES:%=$(B)/ptx/%.ptx.o) \
               $(B)/ptx/modules.o $(PTX_RUNTIME)
PTX_LINK    := $(CXX) -pie -fopenmp -Wl,--build-id \
               $(addprefix -Wl$(comma)--export-dynamic-symbol=,cudasim_memory_at cudasim_stream_device)
PTX_LIBS    := -lz -lm -ldl
$(PTX_WORKER): $(PTX_OBJECTS) $(B)/link.flags
	$(Q)mkdir -p $(@D); echo "  LD   $@"; $(PTX_LINK) $(OBJECTS) $(PTX_LIBS)

# Every variant that needs no library, small and medium (SIZES=, ONLY='WORKLOAD ...', SCHEDULES=3);
# RESULTS=tests/ptx/results.json is what GPU.md and GET /v1/workloads say.
check-ptx: $(PTX_WORKER) $(B)/reprod-worker
	@$(PYTHON) tests/ptx/check.py $(addprefix --size ,$(or $(SIZES),small medium)) \
	    $(addprefix --only ,$(ONLY)) $(if $(SCHEDULES),--schedules $(SCHEDULES)) \
	    $(if $(RESULTS),--results $(RESULTS)) --launches $(B)/ptx/launches $(B)
	@$(PYTHON) tests/ptx/machine_code.py --launches $(B)/ptx/launches $(B) || [ $$? = 77 ]
# All at small, what is planted, and the machine code: for make test-deep.
check-ptx-short: $(PTX_WORKER) $(B)/reprod-worker check-ptx-planted
	@$(PYTHON) tests/ptx/check.py --launches $(B)/ptx/launches $(B)
	@$(PYTHON) tests/ptx/machine_code.py --launches $(B)/ptx/launches $(B) || [ $$? = 77 ]
# What calls libraries, with imitations of them: for make test-deep.
check-ptx-libraries: $(PTX_WORKER) $(B)/tests/reprod-worker-cudasim $(IMITATIONS)
	@$(RUN_PYTEST) -n $$(nproc) tests/ptx/test_libraries.py
# What is planted in copies of the sources is noticed.
check-ptx-planted: export PTX_NVCC = $(NVCC) $(NVCC_COMPILE)
check-ptx-planted: export PTX_ARCH = $(NVCC_LAST)
check-ptx-planted: export PTX_CC = $(CC) $(PTX_CFLAGS)
check-ptx-planted: export PTX_LINK := $(PTX_LINK)
check-ptx-planted: export PTX_OBJECTS := $(PTX_OBJECTS)
check-ptx-planted: export PTX_LIBS := $(PTX_LIBS)
check-ptx-planted: $(PTX_WORKER)
	@$(PYTHON) tests/ptx/planted.py $(B) $(if $(FAULT),'$(FAULT)')
else
check-ptx check-ptx-short check-ptx-planted check-ptx-libraries:
	@echo 'skipped: nvcc\'s PTX, since there is no nvcc, or this is no plain build'
endif
.PHONY: check-ptx check-ptx-short check-ptx-planted check-ptx-libraries
