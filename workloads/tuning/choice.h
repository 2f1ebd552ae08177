/* A choice among algorithms that give the same result in other bits: by measured time, as
 * auto-tuners choose, and stored, as timing caches store it.
 *
 * A stored choice belongs to one environment (processor class, vector instructions,
 * worker build) and one case without its seed, because time does not depend on values. It
 * does not depend on the number of threads: trials are run by one thread.  It is a small
 * text file in the first of these folders that is an absolute path; it is made if needed:
 *   $REPROD_CACHE_DIR   $XDG_CACHE_HOME/reprod   $HOME/.cache/reprod
 *
 * The file appears complete or not at all, and is never replaced.  If several processes
 * choose at the same time, the first one to store decides, and the others take its
 * choice.  To choose again, remove the file. */
#ifndef WORKLOADS_TUNING_CHOICE_H
#define WORKLOADS_TUNING_CHOICE_H

#include "workloads/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes the trial piece of work with CANDIDATE. */
typedef void choice_trial_cb(void *context, int candidate);

/* The one of COUNT candidates whose trial took the least time: each is run once to warm
 * up and measured once, as cudnnFindConvolutionForwardAlgorithm does. */
int choice_by_time(choice_trial_cb *trial, void *context, const int *candidates,
                   int count);

/* From now on stored choices belong to TEXT too: to a GPU, to a library's version.
 * Borrowed: valid for the run, one line. */
void choice_belongs_to(const char *text);

/* Reads the stored choice of RUN: for each of SLOTS the index of one of the NAME_COUNT
 * NAMES (without blanks).  Returns whether there is one.  A file that holds anything else
 * ends the run as `infra`, and a machine that has none of the folders as `unsupported`.
 */
bool choice_load(struct run *run, const char *const *names, int name_count, int slots,
                 int *ret_chosen);

/* Stores the choice of RUN.  If another process was faster, CHOSEN becomes its choice. */
void choice_store(struct run *run, const char *const *names, int name_count, int slots,
                  int *chosen);

#ifdef __cplusplus
}
#endif

#endif
