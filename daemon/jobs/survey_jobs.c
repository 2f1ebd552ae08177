#include "daemon/jobs/survey_jobs.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/lookup.h"
#include "daemon/base/mem.h"
#include "daemon/jobs/expand.h"

/* What the jobs are made of. */
struct fleet_part {
    const struct catalogue *catalogue;
    const struct device_stack *devices;
    int device_count;
};

void survey_jobs_release(struct survey_jobs *jobs)
{
    for (int i = 0; i < jobs->count; i++) {
        job_release(&jobs->jobs[i]);
    }
    free(jobs->jobs);
    *jobs = (struct survey_jobs){ 0 };
}

/* One more job, for all that is online where DEVICE and STACK are NULL. */
static enum err_code add_job(const struct fleet_part *fleet, const char *device,
                             const char *stack, struct survey_jobs *jobs,
                             struct problems *problems)
{
    json_t *request = json_pack("{s:b}", "survey", 1);
    struct job job;
    enum err_code code;

    if (device) {
        json_object_set_new(request, "devices", json_pack("[s]", device));
    }
    if (stack) {
        json_object_set_new(request, "stacks", json_pack("[s]", stack));
    }
    code = job_request_expand(request, fleet->catalogue, fleet->devices,
                              fleet->device_count, &job, problems);
    json_decref(request);
    if (code == ERR_OK) {
        jobs->jobs = xgrow(jobs->jobs, jobs->count, sizeof *jobs->jobs);
        jobs->jobs[jobs->count++] = job;
    }
    return code;
}

/* Whether a survey measures anything there; elsewhere a job would be refused as empty. */
static bool has_work(const struct device_stack *device)
{
    size_t i;
    json_t *entry;

    json_array_foreach((json_t *)device->catalogue, i, entry)
    {
        if (!json_is_false(json_object_get(entry, "survey"))) {
            return true;
        }
    }
    return device->catalogue == NULL;
}

static enum err_code add_stacks(const struct fleet_part *part, struct survey_jobs *jobs,
                                struct problems *problems)
{
    enum err_code code = ERR_OK;

    for (int i = 0; i < part->device_count && code == ERR_OK; i++) {
        if (has_work(&part->devices[i])) {
            code = add_job(part, part->devices[i].id, part->devices[i].stack, jobs,
                           problems);
        }
    }
    return code;
}

/* One job for the device of PART, or, where that is too large, one for each of its
 * stacks. */
static enum err_code add_device(const struct fleet_part *part, struct survey_jobs *jobs,
                                struct problems *problems)
{
    enum err_code code = add_job(part, part->devices[0].id, NULL, jobs, problems);

    if (code == ERR_INVALID) {
        problems_release(problems);
        code = add_stacks(part, jobs, problems);
    }
    return code;
}

/* A device is there once with each of its stacks. */
struct grouped {
    struct device_stack *stacks;
    int count;
};

static void group(struct grouped *device, const struct device_stack *stack)
{
    device->stacks = xgrow(device->stacks, device->count, sizeof *device->stacks);
    device->stacks[device->count++] = *stack;
}

/* Looks at no device for the sake of another: there may be thousands. */
static enum err_code add_devices(const struct fleet_part *fleet, struct survey_jobs *jobs,
                                 struct problems *problems)
{
    struct grouped *devices = xcalloc((size_t)fleet->device_count + 1, sizeof *devices);
    struct lookup device_of = { .slots = NULL };
    enum err_code code = ERR_OK;
    int count = 0;

    for (int i = 0; i < fleet->device_count; i++) {
        struct grouped *device = lookup_get(&device_of, fleet->devices[i].id);

        if (!device) {
            device = &devices[count++];
            lookup_put(&device_of, fleet->devices[i].id, device);
        }
        group(device, &fleet->devices[i]);
    }
    for (int i = 0; i < count; i++) {
        const struct fleet_part part = { fleet->catalogue, devices[i].stacks,
                                         devices[i].count };

        if (code == ERR_OK && device_is_there(&part.devices[0])) {
            code = add_device(&part, jobs, problems);
        }
        free(devices[i].stacks);
    }
    lookup_release(&device_of);
    free(devices);
    return code;
}

/* CODE, and nothing left behind where it is no success. */
static enum err_code conclude(enum err_code code, struct survey_jobs *jobs,
                              struct problems *problems)
{
    if (code == ERR_OK && jobs->count == 0) {
        problems_add(problems, PROBLEM_INVALID, "",
                     "no device has a workload that a survey measures");
        code = ERR_INVALID;
    }
    if (code != ERR_OK) {
        survey_jobs_release(jobs);
    }
    return code;
}

enum err_code survey_jobs_of_device(const struct catalogue *catalogue,
                                    const struct device_stack *devices, int device_count,
                                    const char *device, struct survey_jobs *ret_jobs,
                                    struct problems *ret_problems)
{
    struct grouped grouped = { NULL, 0 };
    struct fleet_part part = { .catalogue = catalogue };
    enum err_code code;

    *ret_jobs = (struct survey_jobs){ 0 };
    for (int i = 0; i < device_count; i++) {
        if (strcmp(devices[i].id, device) == 0) {
            group(&grouped, &devices[i]);
        }
    }
    part.devices = grouped.stacks;
    part.device_count = grouped.count;
    code = grouped.count > 0
               ? add_device(&part, ret_jobs, ret_problems)
               : add_job(&(struct fleet_part){ catalogue, devices, device_count }, device,
                         NULL, ret_jobs, ret_problems);
    free(grouped.stacks);
    return conclude(code, ret_jobs, ret_problems);
}

/* Only the size of a survey's request can be wrong: too large, or nothing. */
enum err_code survey_jobs_make(const struct catalogue *catalogue,
                               const struct device_stack *devices, int device_count,
                               struct survey_jobs *ret_jobs,
                               struct problems *ret_problems)
{
    const struct fleet_part fleet = { catalogue, devices, device_count };
    enum err_code code;

    *ret_jobs = (struct survey_jobs){ 0 };
    code = add_job(&fleet, NULL, NULL, ret_jobs, ret_problems);
    if (code == ERR_INVALID) {
        problems_release(ret_problems);
        code = add_devices(&fleet, ret_jobs, ret_problems);
    }
    return conclude(code, ret_jobs, ret_problems);
}
