#include "daemon/engine/slurm_launch.h"

#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/json_in.h"

const char slurm_comment[] = "reprod:";

/* A service that is a job itself starts jobs, not steps of its own. */
static const char *const unset[] = { "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_STEP_ID",
                                     "REPROD_PARENT" };

/* What an entry may say, in the order in which srun is told. */
static const char *const options[] = { "partition", "qos",  "account",    "constraint",
                                       "gres",      "time", "reservation" };

bool slurm_host_is(const json_t *host)
{
    return strcmp(in_text_or_empty(host, "engine"), "slurm") == 0;
}

const char *slurm_host_node(const json_t *host)
{
    const char *node = in_text(json_object_get(host, "slurm"), "node");

    return node ? node : in_text_or_empty(host, "name");
}

bool slurm_host_has_reservation(const json_t *host)
{
    return in_text(json_object_get(host, "slurm"), "reservation") != NULL;
}

static void add(json_t *argv, const char *word)
{
    json_array_append_new(argv, json_string(word));
}

static void add_all(json_t *argv, const json_t *words)
{
    size_t i;
    json_t *word;

    json_array_foreach((json_t *)words, i, word)
    {
        json_array_append(argv, word);
    }
}

static void add_environment(json_t *argv)
{
    add(argv, "env");
    for (int i = 0; i < COUNT_OF(unset); i++) {
        add(argv, "-u");
        add(argv, unset[i]);
    }
    json_array_append_new(argv, json_sprintf("SLURM_EXIT_ERROR=%d", SLURM_EXIT_ERROR));
    json_array_append_new(argv,
                          json_sprintf("SLURM_EXIT_IMMEDIATE=%d", SLURM_EXIT_IMMEDIATE));
}

/* One task that has all of the node that the job has; its bytes come as they are written.
 */
static void add_srun(json_t *argv, const json_t *host, const char *name)
{
    const json_t *slurm = json_object_get(host, "slurm");

    add(argv, "srun");
    add(argv, "--nodes=1");
    add(argv, "--ntasks=1");
    add(argv, "--unbuffered");
    add(argv, "--cpu-bind=none");
    json_array_append_new(argv, json_sprintf("--nodelist=%s", slurm_host_node(host)));
    json_array_append_new(argv, json_sprintf("--job-name=%s", name));
    json_array_append_new(argv, json_sprintf("--comment=%s%s", slurm_comment,
                                             in_text_or_empty(host, "name")));
    if (!json_is_false(json_object_get(slurm, "exclusive"))) {
        add(argv, "--exclusive");
        add(argv, "--mem=0"); /* all of it */
    }
    for (int i = 0; i < COUNT_OF(options); i++) {
        const char *value = in_text(slurm, options[i]);

        if (value) {
            json_array_append_new(argv, json_sprintf("--%s=%s", options[i], value));
        }
    }
    add_all(argv, json_object_get(slurm, "arguments"));
}

json_t *slurm_launch(const json_t *host, const char *name)
{
    json_t *argv = json_array();

    add_environment(argv);
    add_srun(argv, host, name);
    add_all(argv, json_object_get(host, "agent"));
    return argv;
}
