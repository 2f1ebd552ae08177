/* The catalogue: which workloads the workers of this installation can run.  It comes from
 * the workers themselves (`reprod-worker --catalogue`, through an agent's hello), so the
 * daemon knows a workload without linking it. */
#ifndef DAEMON_EVIDENCE_CATALOGUE_H
#define DAEMON_EVIDENCE_CATALOGUE_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/base/err.h"
#include "daemon/evidence/subject.h"

struct catalogue_variant {
    const char *name, *summary, *models, *algorithm;
    const char *claim; /* NULL: the library promises nothing */
    enum subject subject;
    const char *subject_name; /* "cuDNN"; NULL for a model */
    bool control;
    const char *kind; /* of control_kinds (daemon/evidence/verdict.h): why the control
                         varies, or what the variant is exposed to.  If it is not given:
                         race for a control, else what all controls of the workload are,
                         race if they differ */
    const char *equals, *differs; /* the variant whose digest must be equal to its own, or
                                     must differ; NULL: none.  At most one is given */
};

struct catalogue_size {
    const char *name, *description;
};

/* One workload on one backend.  All texts are owned by the catalogue. */
struct catalogue_workload {
    const char *name;
    int version;
    const char *backend;
    const char *title, *summary;
    const struct catalogue_variant *variants; /* the first is the default behaviour */
    int variant_count;
    const struct catalogue_size *sizes; /* the first is the default */
    int size_count;
    const char *const *dtypes; /* the first is the default */
    int dtype_count;
    const char *weight_sum;
    const char *loss;       /* NULL: none */
    const char *no_control; /* NULL: a variant is the control */
    bool unseeded;          /* a command without seeded inputs */
    bool surveyed;          /* a job that names no workloads runs it: all but external
                               ones whose configuration does not say "survey" */
    int timeout_seconds;    /* if a job names none; 0: the job's default */
    const json_t
        *circumstances; /* names of those under which it can compute; NULL: all */
    const json_t *json; /* as the worker printed it; borrowed from the catalogue */
};

struct catalogue;

struct catalogue *catalogue_new(void);
void catalogue_free(struct catalogue *catalogue); /* NULL is fine */

/* Adds what one worker printed: an array of workload objects.  A workload that is there
 * already, equal in every field, is fine.  The same name and backend with anything
 * different is ERR_CONFLICT (workers of different builds in one fleet).  So are other
 * controls of one version on another backend: cases are the same there.  ERR_PROTOCOL
 * names the JSON pointer of what is malformed.  The workloads before it were added. */
enum err_code catalogue_add(struct catalogue *catalogue, const json_t *workloads,
                            struct err *err);

int catalogue_count(const struct catalogue *catalogue);

/* By (name, backend) order.  Borrowed: valid until the catalogue is freed. */
const struct catalogue_workload *catalogue_at(const struct catalogue *catalogue,
                                              int index);

/* NULL if there is none.  BACKEND NULL: the first backend that has it. */
const struct catalogue_workload *catalogue_find(const struct catalogue *catalogue,
                                                const char *name, const char *backend);
const struct catalogue_variant *
catalogue_variant(const struct catalogue_workload *workload, const char *name);

#endif
