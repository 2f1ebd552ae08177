/* The environment has the variables that choose maths code, and no others. */
#include "workloads/worker/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_relevant_variables(void **state)
{
    static const char *const in[] = { "OMP_SCHEDULE",
                                      "GLIBC_TUNABLES",
                                      "MKL_CBWR",
                                      "CUBLAS_WORKSPACE_CONFIG",
                                      "NVIDIA_TF32_OVERRIDE",
                                      "TF_DETERMINISTIC_OPS",
                                      "NVTE_ALLOW_NONDETERMINISTIC_ALGO",
                                      "TORCHINDUCTOR_DETERMINISTIC",
                                      "VLLM_BATCH_INVARIANT",
                                      "CUDA_LAUNCH_BLOCKING" };
    static const char *const out[] = {
        "OMP_NUM_THREADS",         "PATH",         "TF_CPP_MIN_LOG_LEVEL",
        "TORCHINDUCTOR_CACHE_DIR", "VLLM_API_KEY", "XOMP_SCHEDULE",
        "GLIBC_TUNABLES_X",        "OMP",          ""
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(in); i++) {
        assert_true(environment_is_relevant(in[i], strlen(in[i])));
    }
    for (int i = 0; i < COUNT_OF(out); i++) {
        assert_false(environment_is_relevant(out[i], strlen(out[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relevant_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
