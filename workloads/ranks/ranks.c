#include "workloads/ranks/ranks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Exit statuses of a rank; any other end, a signal's included, is the cause of a failure
 * and not its consequence. */
enum { ENDED = 0, FAILED = 1, LEFT_ALONE = 2 };

/* The sockets of a group: [i][0] is the coordinator's end to rank i, or the end of rank i
 * to the next one. */
struct wires {
    int coordinator[RANKS_MAX][2], ring[RANKS_MAX][2];
};

static struct ranks *running;

void *ranks_map(struct run *run, size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        run_infra(run, "cannot map %zu bytes of memory that ranks share: %s", bytes,
                  strerror(errno));
    }
    return memory;
}

static bool message_send(int socket, int32_t message)
{
    ssize_t sent;

    do {
        sent = send(socket, &message, sizeof message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == sizeof message;
}

static bool message_receive(int socket, int32_t *ret_message)
{
    ssize_t received;

    do {
        received = recv(socket, ret_message, sizeof *ret_message, 0);
    } while (received < 0 && errno == EINTR);
    return received == sizeof *ret_message;
}

static void ranks_wait(struct ranks *ranks)
{
    for (int i = 0; i < ranks->count; i++) {
        close(ranks->sockets[i].fd);
    }
    for (int i = 0; i < ranks->count; i++) {
        while (waitpid(ranks->pids[i], &ranks->statuses[i], 0) < 0 && errno == EINTR) {
            ;
        }
    }
    ranks->count = 0;
}

void ranks_stop(struct ranks *ranks)
{
    running = NULL;
    ranks_wait(ranks);
}

static void stop_running(void)
{
    if (running) {
        ranks_stop(running);
    }
}

/* A rank has ended before it should.  Its end makes others end, whose sockets may have
 * been noticed first, so all of them are asked. */
__attribute__((noreturn)) static void ranks_lost(struct ranks *ranks)
{
    int count = ranks->count;

    ranks_stop(ranks);
    for (int i = 0; i < count; i++) {
        int status = ranks->statuses[i];

        if (WIFSIGNALED(status)) {
            run_infra(ranks->run, "rank %d of %d was ended by signal %d (%s)", i, count,
                      WTERMSIG(status), strsignal(WTERMSIG(status)));
        }
        if (WEXITSTATUS(status) != ENDED && WEXITSTATUS(status) != LEFT_ALONE) {
            run_infra(ranks->run, "rank %d of %d ended with status %d; the log says why",
                      i, count, WEXITSTATUS(status));
        }
    }
    run_infra(ranks->run, "the %d ranks lost their connections", count);
}

void ranks_tell(struct ranks *ranks, int32_t message)
{
    for (int i = 0; i < ranks->count; i++) {
        if (!message_send(ranks->sockets[i].fd, message)) {
            ranks_lost(ranks);
        }
    }
}

int32_t ranks_hear(struct ranks *ranks)
{
    int32_t message;

    for (;;) {
        for (int i = 0; i < ranks->count; i++) {
            if (!ranks->sockets[i].revents) {
                continue;
            }
            ranks->sockets[i].revents = 0;
            if (!message_receive(ranks->sockets[i].fd, &message)) {
                ranks_lost(ranks);
            }
            return message;
        }
        if (poll(ranks->sockets, (nfds_t)ranks->count, -1) < 0 && errno != EINTR) {
            run_infra(ranks->run, "cannot wait for ranks: %s", strerror(errno));
        }
    }
}

int32_t rank_hear(const struct rank *rank)
{
    int32_t message;

    if (!message_receive(rank->coordinator, &message)) {
        _exit(ENDED);
    }
    return message;
}

void rank_tell(const struct rank *rank, int32_t message)
{
    if (!message_send(rank->coordinator, message)) {
        _exit(LEFT_ALONE);
    }
}

void rank_pass(const struct rank *rank)
{
    if (!message_send(rank->next, 0)) {
        _exit(LEFT_ALONE);
    }
}

void rank_await(const struct rank *rank)
{
    int32_t message;

    if (!message_receive(rank->previous, &message)) {
        _exit(LEFT_ALONE);
    }
}

void rank_fail(const struct rank *rank, const char *what, int error)
{
    fprintf(stderr, "rank %d of %d: %s: %s\n", rank->number, rank->count, what,
            strerror(error));
    _exit(FAILED);
}

/* Closes what belongs to others: a socket tells of an end only when nobody else has the
 * other end of it. */
static struct rank rank_connect(const struct wires *wires, int number, int count)
{
    int previous = (number + count - 1) % count;
    struct rank rank = { .number = number,
                         .count = count,
                         .coordinator = wires->coordinator[number][1],
                         .previous = wires->ring[previous][1],
                         .next = wires->ring[number][0] };

    for (int i = 0; i < count; i++) {
        close(wires->coordinator[i][0]);
        if (i != number) {
            close(wires->coordinator[i][1]);
            close(wires->ring[i][0]);
        }
        if (i != previous) {
            close(wires->ring[i][1]);
        }
    }
    return rank;
}

static void wires_open(struct run *run, struct wires *wires, int count)
{
    enum { TYPE = SOCK_SEQPACKET | SOCK_CLOEXEC };

    for (int i = 0; i < count; i++) {
        if (socketpair(AF_UNIX, TYPE, 0, wires->coordinator[i]) < 0 ||
            socketpair(AF_UNIX, TYPE, 0, wires->ring[i]) < 0) {
            run_infra(run, "cannot connect %d ranks: %s", count, strerror(errno));
        }
    }
}

void ranks_start(struct ranks *ranks, struct run *run, int count, rank_main_cb *body,
                 void *context)
{
    pid_t worker = getpid();
    struct wires wires;

    *ranks = (struct ranks){ .run = run };
    wires_open(run, &wires, count);
    if (!running && atexit(stop_running) != 0) {
        run_infra(run, "cannot register what stops the ranks");
    }
    running = ranks;
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            struct rank rank = rank_connect(&wires, i, count);

            if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
                rank_fail(&rank, "parent-death signal", errno);
            }
            if (getppid() == worker) {
                body(&rank, context);
            }
            _exit(LEFT_ALONE);
        }
        if (pid < 0) {
            run_infra(run, "cannot start rank %d of %d: %s", i, count, strerror(errno));
        }
        ranks->pids[i] = pid;
        ranks->sockets[i] =
            (struct pollfd){ .fd = wires.coordinator[i][0], .events = POLLIN };
        ranks->count++;
    }
    for (int i = 0; i < count; i++) {
        close(wires.coordinator[i][1]);
        close(wires.ring[i][0]);
        close(wires.ring[i][1]);
    }
}

static const float *part_before(const struct rank *rank, const float *parts,
                                int64_t stride)
{
    return parts + (rank->number + rank->count - 1) % rank->count * stride;
}

/* OWN takes the values of CHUNK, one of RANKS, from BEFORE: adds its own, or not. */
static void chunk_take(float *own, const float *before, const struct span *span,
                       int chunk, int ranks, bool add)
{
    int64_t begin = span->first + (chunk * span->count + ranks - 1) / ranks;
    int64_t end = span->first + ((chunk + 1) * span->count + ranks - 1) / ranks;

    for (int64_t i = begin; i < end; i++) {
        own[i] = add ? before[i] + own[i] : before[i];
    }
}

/* Nobody overwrites what is yet to be read: before a rank gets the sum of a chunk, what
 * the next rank took of that chunk has gone all the way round. */
void ring_reduce(const struct rank *rank, float *parts, int64_t stride,
                 const struct span *spans, int64_t span_count)
{
    int ranks = rank->count, last = 2 * (ranks - 1) - 1;
    float *own = parts + rank->number * stride;
    const float *before = part_before(rank, parts, stride);

    rank_pass(rank);
    for (int step = 0; step <= last; step++) {
        int chunk = (rank->number + 2 * ranks - 2 - step) % ranks;

        rank_await(rank);
        for (int64_t i = 0; i < span_count; i++) {
            chunk_take(own, before, &spans[i], chunk, ranks, step < ranks - 1);
        }
        if (step < last) {
            rank_pass(rank);
        }
    }
}

void root_reduce(const struct rank *rank, float *parts, int64_t stride, int64_t count)
{
    float *own = parts + rank->number * stride;

    /* From rank 1 round to rank 0: the values of all are there. */
    if (rank->number != 1) {
        rank_await(rank);
    }
    if (rank->number != 0) {
        rank_pass(rank);
        rank_await(rank);
        memcpy(own, part_before(rank, parts, stride), (size_t)count * sizeof(float));
    }
    for (int other = 1; other < rank->count && rank->number == 0; other++) {
        for (int64_t i = 0; i < count; i++) {
            own[i] += parts[other * stride + i];
        }
    }
    if (rank->number != rank->count - 1) {
        rank_pass(rank);
    }
}
