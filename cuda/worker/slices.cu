#include "cuda/worker/slices.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda/nvml/visible.h"

/* NVML has had half a minute of the one that a probe may take. */
enum { ASKED_AT_ONCE = 8, DEADLINE_MS = 20000 };

/* One process that was asked for one device. */
struct asked {
    const char *id;
    pid_t pid;
    int answer; /* -1: there is no process */
};

static struct {
    int count;
    struct slice list[VISIBLE_MAX];
} slices;

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* In the process of its own.  Nothing is left to be done in good order there. */
static void answer(const char *wanted, int fd)
{
    static struct slice slice;
    char cause[DEVICE_CAUSE_SIZE], id[DEVICE_ID_SIZE];
    int count, status = EXIT_FAILURE;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("CUDA_VISIBLE_DEVICES", wanted, 1);
    count = device_count(cause);
    for (int i = 0; i < count && status != EXIT_SUCCESS; i++) {
        if (device_read(i, &slice.properties)) {
            device_id(&slice.properties, id);
            slice.mode = device_compute_mode(i);
            if (strcasecmp(id, wanted) == 0 &&
                write(fd, &slice, sizeof slice) == (ssize_t)sizeof slice) {
                status = EXIT_SUCCESS;
            }
        }
    }
    _exit(status);
}

/* A copy of this process, which has not used CUDA: what CUDA reads once is read anew. */
static struct asked ask(const char *id)
{
    struct asked asked = { id, -1, -1 };
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return asked;
    }
    asked.pid = fork();
    if (asked.pid == 0) {
        answer(id, ends[1]);
    }
    close(ends[1]);
    asked.answer = ends[0];
    return asked;
}

static bool read_answer(const struct asked *asked, int64_t deadline,
                        struct slice *ret_slice)
{
    struct pollfd fd = { asked->answer, POLLIN, 0 };
    int64_t left = deadline - now_ms();

    return asked->answer >= 0 && poll(&fd, 1, left > 0 ? (int)left : 0) == 1 &&
           read(asked->answer, ret_slice, sizeof *ret_slice) ==
               (ssize_t)sizeof *ret_slice;
}

/* One that hangs in the driver is not waited for: it may never end. */
static void forget(const struct asked *asked)
{
    if (asked->answer >= 0) {
        close(asked->answer);
    }
    if (asked->pid > 0) {
        kill(asked->pid, SIGKILL);
        waitpid(asked->pid, NULL, WNOHANG);
    }
}

static void ask_some(const char *const *ids, int count, int64_t deadline)
{
    struct asked asked[ASKED_AT_ONCE];

    for (int i = 0; i < count; i++) {
        asked[i] = ask(ids[i]);
    }
    for (int i = 0; i < count; i++) {
        if (read_answer(&asked[i], deadline, &slices.list[slices.count])) {
            slices.count++;
        } else {
            fprintf(stderr,
                    "reprod-worker: NVML lists %s, and CUDA did not show it to a process "
                    "that asked for nothing else\n",
                    ids[i]);
        }
        forget(&asked[i]);
    }
}

int slices_read(const struct slice **ret_slices)
{
    const char *ids[VISIBLE_MAX], *cause;
    const struct nvml_inventory *inventory = nvml_inventory_get(&cause);
    int64_t deadline = now_ms() + DEADLINE_MS;
    int count = 0;

    static_assert(sizeof(struct slice) <= 4096, "a pipe takes it at once");
    slices.count = 0;
    if (inventory && visible_is_partial(inventory)) {
        count = visible_list(inventory, getenv("CUDA_VISIBLE_DEVICES"), ids);
    }
    for (int i = 0; i < count; i += ASKED_AT_ONCE) {
        ask_some(ids + i, count - i < ASKED_AT_ONCE ? count - i : (int)ASKED_AT_ONCE,
                 deadline);
    }
    *ret_slices = slices.list;
    return slices.count;
}

const char *slices_cause(void)
{
    static char text[DEVICE_CAUSE_SIZE];
    const char *ids[VISIBLE_MAX], *cause;
    const struct nvml_inventory *inventory = nvml_inventory_get(&cause);
    const char *id = inventory ? visible_without_slice(inventory) : NULL;

    if (!id || visible_list(inventory, NULL, ids) > 0) {
        return NULL; /* there are others: CUDA says why it shows none of them */
    }
    snprintf(
        text, sizeof text,
        "%.96s is in MIG mode and has no slice with a compute instance, so it is no "
        "device: nvidia-smi mig -lgip lists profiles, and -cgi PROFILE -C makes a slice",
        id);
    return text;
}

bool slices_are_unknown(void)
{
    const char *cause;

    return nvml_inventory_get(&cause) == NULL;
}
