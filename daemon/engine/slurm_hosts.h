/* The hosts of Slurm, and what follows from what Slurm says of their nodes and of our
 * jobs: who is held, what waits, why an agent ended, and which jobs are orphans.  Asks
 * nothing itself: daemon/engine/slurm.c does. */
#ifndef DAEMON_ENGINE_SLURM_HOSTS_H
#define DAEMON_ENGINE_SLURM_HOSTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/engine/slurm_hooks.h"
#include "daemon/engine/slurm_read.h"
#include "daemon/engine/slurm_words.h"

struct slurm_host {
    char *name, *node;
    bool reservation;
    struct slurm_node facts;
    bool seen;               /* by the listing of nodes that goes on */
    bool known;              /* Slurm has such a node */
    struct slurm_job job;    /* the latest; id -1: none */
    struct slurm_job listed; /* by the listing of jobs that goes on: likewise */
    int64_t gone; /* the latest job of agents that are gone, and when it came; */
    int64_t gone_submitted; /* -1: none */
    int unstarted;          /* listings in which its job had no agent here */
    int64_t orphan;         /* a job that is to be gone before one is started; -1: none */
    int64_t asked_ms;       /* since when the cause of its end is wanted; 0: it is not */
    char held[SLURM_CAUSE_SIZE], waits[SLURM_CAUSE_SIZE];
};

struct slurm_hosts {
    struct slurm_hooks hooks;
    char *job_name; /* of our jobs */
    int64_t user;   /* whose they are */
    int64_t period_ms;
    struct slurm_host *hosts;
    int count;
    struct slurm_host **by_name, **by_node; /* sorted */
    int64_t nodes_ms; /* monotonic, when nodes were last heard of; 0 */
    int64_t heard_ms; /* the same, wall clock */
    int64_t pause_ms; /* until they are asked for again, if it is longer than usual */
    bool jobs_known;  /* jobs were listed once */
    char trouble[SLURM_TEXT_SIZE]; /* why Slurm was not heard; "" */
    struct slurm_own {
        int64_t id, submitted;
        struct slurm_host *host; /* NULL: none of the configuration */
    } * jobs; /* of ours that have not ended, as the listing has them that goes on */
    int job_count;
    int64_t *orphans; /* jobs of no agent that is here, as the last listing has them */
    int orphan_count;
};

/* JSON: hosts of a configuration, borrowed for the call.  All are held. */
void slurm_hosts_init(struct slurm_hosts *hosts, const json_t *json, const char *job_name,
                      int64_t user, int64_t period_ms, const struct slurm_hooks *hooks);
void slurm_hosts_release(struct slurm_hosts *hosts);

/* A listing of all nodes: its begin, each node, its end.  One that failed has none. */
void slurm_hosts_list_nodes(struct slurm_hosts *hosts);
void slurm_hosts_node(struct slurm_hosts *hosts, const struct slurm_node *node);
void slurm_hosts_nodes_listed(struct slurm_hosts *hosts, int64_t now_ms, int64_t wall_ms);

/* A listing of jobs, which may be others' too; it began at BEGAN_MS. */
void slurm_hosts_list_jobs(struct slurm_hosts *hosts);
void slurm_hosts_job(struct slurm_hosts *hosts, const struct slurm_job *job);
void slurm_hosts_jobs_listed(struct slurm_hosts *hosts, int64_t began_ms, int64_t now_ms);

/* A listing failed because of CAUSE. */
void slurm_hosts_failed(struct slurm_hosts *hosts, const char *cause, int64_t now_ms);

/* What holds hosts may be others by now. */
void slurm_hosts_look(struct slurm_hosts *hosts, int64_t now_ms);

/* The agent of the host NAME ended; false: there is no such host. */
bool slurm_hosts_ask(struct slurm_hosts *hosts, const char *name, int64_t now_ms);

/* Another agent of it is started: what was asked is not answered any more, and no job
 * that is known is that agent's. */
void slurm_hosts_started(struct slurm_hosts *hosts, const char *name);

/* It was let go. */
void slurm_hosts_let_go(struct slurm_hosts *hosts, const char *name);

/* Whether an answer is due; those that are late are given without a cause. */
bool slurm_hosts_asked(struct slurm_hosts *hosts, int64_t now_ms);

json_t *slurm_hosts_json(const struct slurm_hosts *hosts, const char *name);

#endif
