#include "daemon/fleet/fleet_catalogues.h"

/* Those that no hello has any more. */
static void drop_unused(json_t *catalogues)
{
    for (size_t i = json_array_size(catalogues); i-- > 0;) {
        if (json_array_get(catalogues, i)->refcount == 1) {
            json_array_remove(catalogues, i);
        }
    }
}

static json_t *find(const json_t *catalogues, const json_t *catalogue)
{
    size_t i;
    json_t *known;

    json_array_foreach(catalogues, i, known)
    {
        if (known == catalogue || json_equal(known, catalogue)) {
            return known;
        }
    }
    return NULL;
}

void fleet_catalogues_share(struct fleet *fleet, json_t *hello)
{
    size_t i;
    json_t *stack;

    if (!fleet->catalogues) {
        fleet->catalogues = json_array();
    }
    drop_unused(fleet->catalogues);
    json_array_foreach(json_object_get(hello, "stacks"), i, stack)
    {
        json_t *catalogue = json_object_get(stack, "catalogue");
        json_t *known = find(fleet->catalogues, catalogue);

        if (known) {
            json_object_set(stack, "catalogue", known);
        } else if (json_is_array(catalogue)) {
            json_array_append(fleet->catalogues, catalogue);
        }
    }
}

bool fleet_catalogues_see(json_t *seen, json_t *catalogue)
{
    size_t i;
    json_t *known;

    json_array_foreach(seen, i, known)
    {
        if (known == catalogue) {
            return false;
        }
    }
    return json_is_array(catalogue) && json_array_append(seen, catalogue) == 0;
}
