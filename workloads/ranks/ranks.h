/* The ranks of a distributed training: processes of their own, in a ring.
 *
 * A rank is a child of the worker, which is its coordinator.  Sockets connect it with the
 * coordinator and with the ranks before and after it; all waiting is for a socket, so it
 * takes no processor and notices the end of the process at the other end.  Memory that
 * was mapped with ranks_map before the ranks were started is shared by all.
 *
 * A rank writes nothing but its log (standard error).  It ends when the coordinator
 * closes its socket, when a process that it talks to has ended, and with the worker
 * itself, however that ends (PR_SET_PDEATHSIG).  The worker waits for all ranks before it
 * exits, and a rank that ends too early ends the run as `infra`. */
#ifndef WORKLOADS_RANKS_RANKS_H
#define WORKLOADS_RANKS_RANKS_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

#include "workloads/workload.h"

enum { RANKS_MAX = 4 };

/* A rank, as its own process sees it. */
struct rank {
    int number, count;
    int coordinator, previous, next; /* sockets */
};

/* The ranks, as the coordinator sees them; one group a process. */
struct ranks {
    struct run *run;
    int count;
    pid_t pids[RANKS_MAX];            /* 0: waited for */
    int statuses[RANKS_MAX];          /* of those that were waited for */
    struct pollfd sockets[RANKS_MAX]; /* revents: what a poll found and is not yet read */
};

/* What a rank does in its process: never returns, since rank_hear ends the process when
 * there is nothing more to do.  It must not call what is RUN's (run_…). */
typedef void rank_main_cb(const struct rank *rank, void *context);

/* Zeros that the ranks which are started later share with the worker.  They live until
 * the process ends; RUN ends as `infra` when there are none. */
void *ranks_map(struct run *run, size_t bytes);

/* Starts COUNT (2 .. RANKS_MAX) ranks, each with BODY and a copy of the worker's memory.
 * To be called in setup before inputs are made: as long as the worker has one thread, its
 * child may do whatever a process may, start threads included.  RANKS must live until
 * ranks_stop. */
void ranks_start(struct ranks *ranks, struct run *run, int count, rank_main_cb *body,
                 void *context);

/* Sends MESSAGE to every rank. */
void ranks_tell(struct ranks *ranks, int32_t message);

/* Waits for the next message of any rank.  The messages of one rank come in the order in
 * which it sent them; among ranks that sent some meanwhile, the first comes first, as
 * with Horovod's coordinator, which goes through the ranks once a cycle. */
int32_t ranks_hear(struct ranks *ranks);

/* Lets the ranks end and waits for them: for teardown.  At exit it happens by itself. */
void ranks_stop(struct ranks *ranks);

/* For a rank: waits for the coordinator's next message; ends the process if there is none
 * to come. */
int32_t rank_hear(const struct rank *rank);

/* For a rank, any thread of it: sends MESSAGE to the coordinator. */
void rank_tell(const struct rank *rank, int32_t message);

/* For a rank: tells the next one that it may go on, and waits until the one before has
 * done so.  What a rank wrote to shared memory before rank_pass is there after
 * rank_await. */
void rank_pass(const struct rank *rank);
void rank_await(const struct rank *rank);

/* For a rank: ends its process, and so the run, after a line with WHAT and the meaning of
 * ERROR (an errno) in the log. */
__attribute__((noreturn)) void rank_fail(const struct rank *rank, const char *what,
                                         int error);

struct span {
    int64_t first, count;
};

/* Round the ring: each of SPANS is cut into as many chunks as there are ranks, and chunk
 * c is summed from rank c + 1 on.  So the place of a value in its span decides the order
 * in which it is added to others.  Spans go round side by side, each by itself. */
void ring_reduce(const struct rank *rank, float *parts, int64_t stride,
                 const struct span *spans, int64_t span_count);

/* Rank 0 sums COUNT values in the order of ranks; the sums then go round the ring. */
void root_reduce(const struct rank *rank, float *parts, int64_t stride, int64_t count);

#endif
