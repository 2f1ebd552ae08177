/* What /proc says of a process whose name is any bytes: it chose them itself. */
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/process/proc.h"
#include "tests/fuzz/fuzz.h"

static void run(const uint8_t *data, size_t size)
{
    char *name = fuzz_text(data, size);
    struct proc_stat stat;

    FUZZ_CHECK(prctl(PR_SET_NAME, name) == 0);
    FUZZ_CHECK(proc_stat(getpid(), &stat) == 0);
    FUZZ_CHECK(stat.parent == getppid() && stat.session == getsid(0) && stat.start > 0);
    FUZZ_CHECK(proc_may_be(getpid(), getpid(), "A=b"));
    free(name);
}

FUZZ_TARGET("process_name", run);
