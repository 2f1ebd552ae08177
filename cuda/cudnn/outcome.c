#include "cuda/cudnn/outcome.h"

enum { NOT_SUPPORTED_8 = 9, NOT_SUPPORTED_9 = 3, GROUP_SIZE = 1000, MESSAGE_SIZE = 400 };

bool cudnn_says_unsupported(int major, int status)
{
    return major < 9 ? status == NOT_SUPPORTED_8 : status / GROUP_SIZE == NOT_SUPPORTED_9;
}

/* What the library last complained about, in its words; cuDNN 9 only. */
static void last_error(char ret_text[MESSAGE_SIZE])
{
    ret_text[0] = '\0';
    if (cudnn_api()->cudnnGetLastErrorString)
        cudnn_api()->cudnnGetLastErrorString(ret_text, MESSAGE_SIZE);
    ret_text[MESSAGE_SIZE - 1] = '\0';
}

void cudnn_check(struct run *run, cudnnStatus_t status, const char *call)
{
    const struct cudnn *cudnn = cudnn_load();
    char last[MESSAGE_SIZE];

    if (status == 0)
        return;
    last_error(last);
    if (cudnn_says_unsupported(cudnn->major, (int)status))
        run_unsupported(run, "cuDNN %s: %s: %s%s%s", cudnn->version, call,
                        cudnn->api.cudnnGetErrorString(status), last[0] ? ": " : "",
                        last);
    run_infra(run, "cuDNN %s: %s: %s%s%s", cudnn->version, call,
              cudnn->api.cudnnGetErrorString(status), last[0] ? ": " : "", last);
}

const char *cudnn_claim(cudnnDeterminism_t determinism)
{
    return determinism == CUDNN_DETERMINISTIC ? "deterministic" : "non-deterministic";
}
