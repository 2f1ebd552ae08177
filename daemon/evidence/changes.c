#include "daemon/evidence/changes.h"

#include <stdbool.h>
#include <stdlib.h>

#include "daemon/base/buf.h"

static json_t *member_of(json_t *object, const char *name)
{
    json_t *member = json_object_get(object, name);

    if (!member) {
        member = json_object();
        json_object_set_new(object, name, member);
    }
    return member;
}

static bool is_fact(const json_t *value)
{
    return json_is_string(value) || json_is_number(value) || json_is_boolean(value);
}

/* The values of FROM; what is nested or unknown is left out. */
static void add_values(json_t *to, const json_t *from)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)from, name, value)
    {
        if (is_fact(value)) {
            json_object_set(to, name, value);
        }
    }
}

static void add_devices(json_t *facts, const json_t *devices)
{
    size_t i;
    json_t *device;

    json_array_foreach(devices, i, device)
    {
        const char *id = json_string_value(json_object_get(device, "id"));

        if (id) {
            json_t *of = member_of(member_of(facts, "devices"), id);
            json_t *model = json_object_get(device, "model");

            add_values(of, json_object_get(device, "attributes"));
            if (is_fact(model)) {
                json_object_set(of, "model", model);
            }
        }
    }
}

json_t *changes_facts(const json_t *hello)
{
    json_t *facts = json_object();
    size_t i;
    json_t *stack;

    add_values(member_of(facts, "host"), json_object_get(hello, "facts"));
    json_array_foreach(json_object_get(hello, "stacks"), i, stack)
    {
        const char *name = json_string_value(json_object_get(stack, "name"));
        const json_t *probe = json_object_get(stack, "probe");
        json_t *build = json_object_get(probe, "worker_build");
        json_t *of;

        if (!name || !json_is_object(probe)) {
            continue; /* it could not be asked */
        }
        of = member_of(member_of(facts, "stacks"), name);
        add_values(of, json_object_get(stack, "settings"));
        add_values(of, json_object_get(probe, "versions"));
        if (is_fact(build)) {
            json_object_set(of, "worker_build", build);
        }
        add_devices(facts, json_object_get(probe, "devices"));
    }
    return facts;
}

/* Where a value belongs. */
struct place {
    const char *stack, *device; /* NULL: not to one */
};

static void tell(json_t *changes, const struct place *place, const char *name,
                 const json_t *before, const json_t *after)
{
    json_array_append_new(changes,
                          json_pack("{s:s?, s:s?, s:s, s:O?, s:O?}", "stack",
                                    place->stack, "device", place->device, "name", name,
                                    "before", before, "after", after));
}

/* A library that a stack no longer has is gone; an attribute that a device does not tell
 * may only not have been readable. */
static void compare_values(const struct place *place, const json_t *before, json_t *now,
                           json_t *changes)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)before, name, value)
    {
        const json_t *after = json_object_get(now, name);

        if (!after && !place->stack) {
            json_object_set(now, name, value);
        } else if (!after || !json_equal(value, (json_t *)after)) {
            tell(changes, place, name, value, after);
        }
    }
    json_object_foreach(now, name, value)
    {
        if (place->stack && !json_object_get(before, name)) {
            tell(changes, place, name, NULL, value);
        }
    }
}

static void compare_each(bool is_stack, const json_t *before, json_t *now,
                         json_t *changes)
{
    const char *name;
    json_t *values;

    json_object_foreach((json_t *)before, name, values)
    {
        const struct place place = { is_stack ? name : NULL, is_stack ? NULL : name };
        json_t *own = json_object_get(now, name);

        if (own) {
            compare_values(&place, values, own, changes);
        } else {
            json_object_set(now, name, values);
        }
    }
}

json_t *changes_compare(const json_t *before, const json_t *now, json_t **ret_merged)
{
    static const struct place host = { NULL, NULL };
    json_t *merged = json_deep_copy(now);
    json_t *changes = json_array();

    compare_values(&host, json_object_get(before, "host"), member_of(merged, "host"),
                   changes);
    compare_each(true, json_object_get(before, "stacks"), member_of(merged, "stacks"),
                 changes);
    compare_each(false, json_object_get(before, "devices"), member_of(merged, "devices"),
                 changes);
    *ret_merged = merged;
    return changes;
}

static void add_value(struct buf *buf, const json_t *value)
{
    char *text;

    if (json_is_string(value)) {
        buf_puts(buf, json_string_value(value));
    } else if (json_is_null(value)) {
        buf_puts(buf, "none");
    } else {
        text = json_dumps(value, JSON_ENCODE_ANY);
        buf_puts(buf, text);
        free(text);
    }
}

static bool is_same(const json_t *a, const json_t *b, const char *member)
{
    json_t *x = json_object_get(a, member), *y = json_object_get(b, member);

    return x == y || json_equal(x, y);
}

/* The same change, of another stack or another device. */
static bool is_alike(const json_t *a, const json_t *b)
{
    return is_same(a, b, "name") && is_same(a, b, "before") && is_same(a, b, "after") &&
           json_is_null(json_object_get(a, "stack")) ==
               json_is_null(json_object_get(b, "stack")) &&
           json_is_null(json_object_get(a, "device")) ==
               json_is_null(json_object_get(b, "device"));
}

/* "", " (stack a)", or " (devices a, b)": those of CHANGES that are like the one at
 * FIRST, in their order. */
static void add_places(struct buf *buf, const json_t *changes, size_t first,
                       const char *kind)
{
    struct buf names = BUF_INIT;
    int count = 0;

    for (size_t i = first; i < json_array_size(changes); i++) {
        const json_t *change = json_array_get(changes, i);
        const char *name = json_string_value(json_object_get(change, kind));

        if (name && is_alike(change, json_array_get(changes, first))) {
            buf_printf(&names, "%s%s", count ? ", " : "", name);
            count++;
        }
    }
    if (count) {
        buf_printf(buf, " (%s%s %s)", kind, count > 1 ? "s" : "", names.data);
    }
    buf_release(&names);
}

static bool was_told(const json_t *changes, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (is_alike(json_array_get(changes, i), json_array_get(changes, at))) {
            return true;
        }
    }
    return false;
}

char *changes_text(const json_t *changes)
{
    struct buf buf = BUF_INIT;
    size_t i;
    json_t *change;

    json_array_foreach(changes, i, change)
    {
        if (was_told(changes, i)) {
            continue;
        }
        buf_printf(&buf, "%s%s ", i ? ", " : "",
                   json_string_value(json_object_get(change, "name")));
        add_value(&buf, json_object_get(change, "before"));
        buf_puts(&buf, " → ");
        add_value(&buf, json_object_get(change, "after"));
        add_places(&buf, changes, i, "stack");
        add_places(&buf, changes, i, "device");
    }
    return buf_detach(&buf, NULL);
}

char *changes_compare_texts(const char *before, const char *now, char **ret_merged,
                            char **ret_words)
{
    json_t *old = json_loads(before, 0, NULL);
    json_t *new = json_loads(now, 0, NULL);
    json_t *merged;
    json_t *changes = changes_compare(old, new, &merged);
    bool any = json_array_size(changes) > 0;
    char *text = any ? json_dumps(changes, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    *ret_merged = json_dumps(merged, JSON_COMPACT | JSON_SORT_KEYS);
    *ret_words = changes_text(changes);
    json_decref(old);
    json_decref(new);
    json_decref(merged);
    json_decref(changes);
    return text;
}
