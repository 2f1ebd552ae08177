#include "daemon/evidence/catalogue.h"
#include "daemon/fleet/fleet_host.h"

/* Adds the catalogues of HELLO's stacks. */
static enum err_code add_stacks(struct catalogue *catalogue, const json_t *hello,
                                struct err *err)
{
    size_t i;
    json_t *stack;

    json_array_foreach(json_object_get(hello, "stacks"), i, stack)
    {
        json_t *workloads = json_object_get(stack, "catalogue");

        if (json_is_array(workloads) &&
            catalogue_add(catalogue, workloads, err) != ERR_OK) {
            return err_wrap(err, "stack %s", fleet_text(stack, "name"));
        }
    }
    return ERR_OK;
}

/* Adds what contradicts nothing: a host that is away does not keep others out. */
static void add_leftovers(struct catalogue *catalogue, const json_t *hello)
{
    size_t i;
    size_t w;
    json_t *stack;
    json_t *workload;

    json_array_foreach(json_object_get(hello, "stacks"), i, stack)
    {
        json_array_foreach(json_object_get(stack, "catalogue"), w, workload)
        {
            json_t *alone = json_pack("[O]", workload);
            struct err ignored;

            catalogue_add(catalogue, alone, &ignored);
            json_decref(alone);
        }
    }
}

static bool is_beside(const struct fleet_host *host, const struct fleet_host *other)
{
    return other != host && other->online;
}

/* The first host online that HELLO does not go with; NULL: it contradicts itself. */
static const char *find_other(const struct fleet_host *host, const json_t *hello)
{
    const struct fleet *fleet = host->fleet;
    const char *name = NULL;

    for (int i = 0; i < fleet->host_count && !name; i++) {
        const struct fleet_host *other = &fleet->hosts[i];
        struct catalogue *both = catalogue_new();
        struct err ignored;

        if (is_beside(host, other) &&
            add_stacks(both, other->hello, &ignored) == ERR_OK &&
            add_stacks(both, hello, &ignored) != ERR_OK) {
            name = other->name;
        }
        catalogue_free(both);
    }
    return name;
}

enum err_code fleet_take_catalogue(struct fleet_host *host, const json_t *hello,
                                   struct err *err)
{
    struct fleet *fleet = host->fleet;
    struct catalogue *whole = catalogue_new();
    struct err ignored;

    for (int i = 0; i < fleet->host_count; i++) {
        if (is_beside(host, &fleet->hosts[i])) {
            add_stacks(whole, fleet->hosts[i].hello, &ignored); /* they were taken in */
        }
    }
    if (add_stacks(whole, hello, err) != ERR_OK) {
        const char *other = find_other(host, hello);

        catalogue_free(whole);
        return other ? err_wrap(err, "beside host %s", other) : err->code;
    }
    for (int i = 0; i < fleet->host_count; i++) {
        if (&fleet->hosts[i] != host && !fleet->hosts[i].online) {
            add_leftovers(whole, fleet->hosts[i].hello);
        }
    }
    catalogue_free(fleet->catalogue);
    fleet->catalogue = whole;
    return ERR_OK;
}
