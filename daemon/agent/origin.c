#include "daemon/agent/origin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/mem.h"
#include "daemon/process/proc.h"

static const char prefix[] = "REPROD_NONCE=";

void origin_draw(struct origin *ret_origin)
{
    uint64_t bits[2];

    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits) {
        fputs("reprod: getrandom failed\n", stderr);
        abort();
    }
    snprintf(ret_origin->variable, sizeof ret_origin->variable,
             "%s%016" PRIx64 "%016" PRIx64, prefix, bits[0], bits[1]);
}

const char *origin_nonce(const struct origin *origin)
{
    return origin->variable + strlen(prefix);
}

char **origin_environment(const struct origin *origin, char **environment)
{
    int count = 0;

    while (environment[count]) {
        count++;
    }
    environment = xrealloc(environment, sizeof *environment * ((size_t)count + 2));
    environment[count] = xstrdup(origin->variable);
    environment[count + 1] = NULL;
    return environment;
}

enum err_code origin_check(const struct origin *origin, const json_t *start, pid_t leader,
                           struct err *err)
{
    const char *nonce = json_string_value(json_object_get(start, "nonce"));
    json_int_t pid = json_integer_value(json_object_get(start, "pid"));

    if (!nonce) {
        return err_set(err, ERR_PROTOCOL,
                       "start: nonce is missing: it has to be the value of REPROD_NONCE, "
                       "which shows that these events are of this run");
    }
    if (strcmp(nonce, origin_nonce(origin)) != 0) {
        return err_set(err, ERR_PROTOCOL,
                       "start: nonce is not the value of REPROD_NONCE: these events are "
                       "of another run");
    }
    if (pid < 1 || pid > INT32_MAX ||
        !proc_may_be((pid_t)pid, leader, origin->variable)) {
        return err_set(err, ERR_PROTOCOL, "start: pid %lld is not a process of this run",
                       (long long)pid);
    }
    return ERR_OK;
}
