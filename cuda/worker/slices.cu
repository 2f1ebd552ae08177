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
    int place; /* of its id, and of what it says, in their lists */
    pid_t pid;
    int answer; /* -1: there is no process */
};

static struct {
    int count;
    bool answered[VISIBLE_MAX];
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
static struct asked ask(const char *id, int place)
{
    struct asked asked = { place, -1, -1 };
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

/* Takes what has come from the COUNT processes.  Returns how many are still to answer. */
static int take_answers(struct asked *asked, int count, int64_t deadline)
{
    struct pollfd fds[ASKED_AT_ONCE];
    int64_t left = deadline - now_ms();
    int kept = 0;

    for (int i = 0; i < count; i++) {
        fds[i].fd = asked[i].answer;
        fds[i].events = POLLIN;
        fds[i].revents = 0;
        left = asked[i].answer < 0 ? 0 : left; /* nothing comes from there */
    }
    if (poll(fds, (nfds_t)count, left > 0 ? (int)left : 0) < 0) {
        return count; /* interrupted */
    }
    for (int i = 0; i < count; i++) {
        struct slice *slice = &slices.list[asked[i].place];

        if (fds[i].revents == 0 && fds[i].fd >= 0) {
            asked[kept++] = asked[i];
            continue;
        }
        slices.answered[asked[i].place] =
            fds[i].fd >= 0 &&
            read(fds[i].fd, slice, sizeof *slice) == (ssize_t)sizeof *slice;
        forget(&asked[i]);
    }
    return kept;
}

/* Some at a time: one that hangs keeps the place of one, and no other from being asked.
 */
static void ask_all(const char *const *ids, int count, int64_t deadline)
{
    struct asked asked[ASKED_AT_ONCE];
    int waiting = 0;

    for (int next = 0; (next < count || waiting > 0) && now_ms() < deadline;) {
        while (waiting < ASKED_AT_ONCE && next < count) {
            asked[waiting++] = ask(ids[next], next);
            next++;
        }
        waiting = take_answers(asked, waiting, deadline);
    }
    for (int i = 0; i < waiting; i++) {
        forget(&asked[i]);
    }
}

/* Keeps what was answered, in its order. */
static void keep_answered(const char *const *ids, int count)
{
    for (int i = 0; i < count; i++) {
        if (slices.answered[i]) {
            slices.list[slices.count++] = slices.list[i];
        } else {
            fprintf(stderr,
                    "reprod-worker: NVML lists %s, and CUDA did not show it to a process "
                    "that asked for nothing else\n",
                    ids[i]);
        }
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
    memset(slices.answered, 0, sizeof slices.answered);
    if (inventory && visible_is_partial(inventory)) {
        count = visible_list(inventory, getenv("CUDA_VISIBLE_DEVICES"), ids);
    }
    ask_all(ids, count, deadline);
    keep_answered(ids, count);
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
