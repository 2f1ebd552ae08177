/* Nodes and jobs as `sinfo --json` and `squeue --json` say them, from Slurm 21.08 on.
 * Pure.
 *
 * Versions differ: a state is one text with `state_flags` beside it, or an array of
 * texts, or a text with marks ("down*"); features are one text, or an array; a number is
 * a number, or {"set","infinite","number"}.  Whatever is not there, or is of another
 * kind, is "" or -1. */
#ifndef DAEMON_ENGINE_SLURM_READ_H
#define DAEMON_ENGINE_SLURM_READ_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/jobs/case.h"

enum { SLURM_STATE_SIZE = 192, SLURM_TEXT_SIZE = 256 };

struct slurm_node {
    char name[CASE_TITLE_SIZE];
    char state[SLURM_STATE_SIZE]; /* "IDLE+DRAIN"; "": it says none */
    char reason[SLURM_TEXT_SIZE];
    char features[SLURM_TEXT_SIZE]; /* "a,driver-1": the active ones */
    char gres[SLURM_TEXT_SIZE];
};

struct slurm_job {
    int64_t id, user;
    int64_t submitted; /* in seconds */
    int64_t preempted; /* when it was told to make room, in seconds; 0: it was not */
    char name[SLURM_TEXT_SIZE], comment[SLURM_TEXT_SIZE];
    char state[SLURM_STATE_SIZE]; /* "RUNNING", "CANCELLED+COMPLETING" */
    char reason[SLURM_TEXT_SIZE]; /* why it waits: "Priority"; "": no reason */
    char node[CASE_TITLE_SIZE];   /* where it runs or ran */
};

/* JSON is one node, as up to 22.05, or a row of sinfo, which says the same of all nodes
 * that it names: TAKE(arg, node) for each. */
void slurm_nodes_read(const json_t *json,
                      void (*take)(void *arg, const struct slurm_node *node), void *arg);
void slurm_job_read(const json_t *json, struct slurm_job *ret_job);

/* What an element of `errors` says: both commands have some, and exit with 0, while
 * nobody answers them. */
void slurm_error_read(const json_t *json, char ret_text[SLURM_TEXT_SIZE]);

#endif
