#include "daemon/process/stack_limits.h"

#include "daemon/base/array.h"
#include "daemon/jobs/case.h"

/* Every text of VALUE, names of members included.  Its depth is that of a line. */
static enum err_code check_texts(const json_t *value, struct err *err)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_string_length(value) > STACK_TEXT_MAX) {
        return err_set(err, ERR_TOO_LARGE, "is a text of more than %d bytes",
                       STACK_TEXT_MAX);
    }
    json_object_foreach((json_t *)value, key, member)
    {
        if (check_texts(member, err) != ERR_OK) {
            return err_wrap(err, "%.64s", key);
        }
    }
    json_array_foreach(value, i, member)
    {
        if (check_texts(member, err) != ERR_OK) {
            return err_wrap(err, "[%zu]", i);
        }
    }
    return ERR_OK;
}

/* NAME, called KEY, is kept whole in SIZE bytes; it may be missing. */
static enum err_code check_size(const json_t *name, const char *key, size_t size,
                                struct err *err)
{
    if (json_string_length(name) >= size) {
        return err_set(err, ERR_TOO_LARGE, "%s has more than %zu bytes", key, size - 1);
    }
    return ERR_OK;
}

/* The same of the member KEY of OBJECT, which must be there. */
static enum err_code check_name(const json_t *object, const char *key, size_t size,
                                struct err *err)
{
    const json_t *name = json_object_get(object, key);

    if (json_string_length(name) == 0) {
        return err_set(err, ERR_PROTOCOL, "%s is not a text, or an empty one", key);
    }
    return check_size(name, key, size, err);
}

static enum err_code check_count(const json_t *array, const char *key, int max,
                                 struct err *err)
{
    if (json_array_size(array) > (size_t)max) {
        return err_set(err, ERR_TOO_LARGE, "%s: there are more than %d", key, max);
    }
    return ERR_OK;
}

static enum err_code check_device(const json_t *device, struct err *err)
{
    const json_t *attributes = json_object_get(device, "attributes");

    if (check_name(device, "id", CASE_TITLE_SIZE, err) != ERR_OK ||
        check_size(json_object_get(device, "model"), "model", CASE_TITLE_SIZE, err) !=
            ERR_OK) {
        return err->code;
    }
    if (json_dumpb(attributes, NULL, 0, JSON_COMPACT) > STACK_ATTRIBUTES_MAX) {
        return err_set(err, ERR_TOO_LARGE, "attributes has more than %d bytes",
                       STACK_ATTRIBUTES_MAX);
    }
    return ERR_OK;
}

/* What the worker's framework has and no workload of it measures; it may be missing. */
static enum err_code check_unmeasured(const json_t *list, struct err *err)
{
    size_t i;
    json_t *name;

    if (list && !json_is_null(list) && !json_is_array(list)) {
        return err_set(err, ERR_PROTOCOL, "unmeasured is not an array");
    }
    json_array_foreach(list, i, name)
    {
        if (!json_is_string(name)) {
            return err_set(err, ERR_PROTOCOL, "unmeasured[%zu] is not a text", i);
        }
    }
    return check_count(list, "unmeasured", STACK_UNMEASURED_MAX, err);
}

static enum err_code check_probe(const json_t *probe, struct err *err)
{
    const json_t *devices = json_object_get(probe, "devices");
    size_t i;
    json_t *device;

    if (check_unmeasured(json_object_get(probe, "unmeasured"), err) != ERR_OK ||
        check_count(devices, "devices", STACK_DEVICES_MAX, err) != ERR_OK ||
        (json_array_size(devices) > 0 &&
         check_name(probe, "backend", CASE_NAME_SIZE, err) != ERR_OK)) {
        return err->code;
    }
    json_array_foreach(devices, i, device)
    {
        if (check_device(device, err) != ERR_OK) {
            return err_wrap(err, "devices[%zu]", i);
        }
    }
    return ERR_OK;
}

/* The variants, sizes or dtypes of WORKLOAD: objects with a name, or names. */
static enum err_code check_parts(const json_t *workload, const char *key, struct err *err)
{
    const json_t *parts = json_object_get(workload, key);
    size_t i;
    json_t *part;

    if (check_count(parts, key, STACK_PARTS_MAX, err) != ERR_OK) {
        return err->code;
    }
    json_array_foreach(parts, i, part)
    {
        const json_t *name = json_is_object(part) ? json_object_get(part, "name") : part;

        if (check_size(name, "the name", CASE_NAME_SIZE, err) != ERR_OK) {
            return err_wrap(err, "%s[%zu]", key, i);
        }
    }
    return ERR_OK;
}

static enum err_code check_workload(const json_t *workload, struct err *err)
{
    static const char *const parts[] = { "variants", "sizes", "dtypes" };

    if (check_name(workload, "workload", CASE_NAME_SIZE, err) != ERR_OK ||
        check_name(workload, "backend", CASE_NAME_SIZE, err) != ERR_OK) {
        return err->code;
    }
    for (int i = 0; i < COUNT_OF(parts); i++) {
        if (check_parts(workload, parts[i], err) != ERR_OK) {
            return err->code;
        }
    }
    return ERR_OK;
}

static enum err_code check_catalogue(const json_t *catalogue, struct err *err)
{
    size_t i;
    json_t *workload;

    if (check_count(catalogue, "workloads", STACK_WORKLOADS_MAX, err) != ERR_OK) {
        return err->code;
    }
    json_array_foreach(catalogue, i, workload)
    {
        if (check_workload(workload, err) != ERR_OK) {
            return err_wrap(err, "[%zu]", i);
        }
    }
    return ERR_OK;
}

enum err_code stack_limits_check(const json_t *stack, struct err *err)
{
    if (check_texts(stack, err) != ERR_OK ||
        check_name(stack, "name", CASE_NAME_SIZE, err) != ERR_OK) {
        return err->code;
    }
    if (check_probe(json_object_get(stack, "probe"), err) != ERR_OK) {
        return err_wrap(err, "probe");
    }
    if (check_catalogue(json_object_get(stack, "catalogue"), err) != ERR_OK) {
        return err_wrap(err, "catalogue");
    }
    return ERR_OK;
}
