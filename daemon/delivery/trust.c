#include "daemon/delivery/trust.h"

static void load(uv_work_t *work)
{
    struct trust *trust = work->data;

    tls_trust_load(trust->ca_file, &trust->tls, &trust->err);
}

static void loaded(uv_work_t *work, int status)
{
    struct trust *trust = work->data;

    (void)status;
    trust->reading = false;
    trust->read(trust->arg);
}

bool trust_is_known(struct trust *trust)
{
    if (!trust->tls && !trust->reading && trust->err.code == ERR_OK) {
        trust->reading = true;
        trust->work.data = trust;
        uv_queue_work(trust->loop, &trust->work, load, loaded);
    }
    return !trust->reading;
}

void trust_forget_failure(struct trust *trust)
{
    trust->err.code = ERR_OK;
}

void trust_release(struct trust *trust)
{
    tls_trust_free(trust->tls);
}
