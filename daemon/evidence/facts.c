#include "daemon/evidence/facts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/buf.h"
#include "daemon/base/mem.h"

enum { VALUE_SIZE = 128 };

/* In the order in which people read them; what is not here follows by name.  Of a hash
 * the beginning says enough. */
static const struct {
    const char *name, *word;
    int most; /* characters of the value; 0: VALUE_SIZE */
} known[] = {
    { "backend", "", 0 },
    { "model", "", 0 },
    { "threads", "threads", 0 },
    { "driver", "driver", 0 },
    { "cuda_runtime", "CUDA", 0 },
    { "cudnn", "cuDNN", 0 },
    { "cublas", "cuBLAS", 17 },
    { "nccl", "NCCL", 0 },
    { "onednn", "oneDNN", 0 },
    { "tensorflow", "TensorFlow", 0 },
    { "torch", "PyTorch", 0 },
    { "jax", "JAX", 0 },
    { "worker_build", "worker", 8 },
};

static int rank_of(const char *name)
{
    int i = 0;

    while (i < COUNT_OF(known) && strcmp(known[i].name, name) != 0) {
        i++;
    }
    return i;
}

static int by_rank(const void *a, const void *b)
{
    const char *left = *(const char *const *)a;
    const char *right = *(const char *const *)b;
    int difference = rank_of(left) - rank_of(right);

    return difference ? difference : strcmp(left, right);
}

static bool is_same_in_all(const char *name, const json_t *const *facts, int count)
{
    const json_t *first = json_object_get(facts[0], name);

    for (int i = 1; i < count; i++) {
        const json_t *other = json_object_get(facts[i], name);

        if (!first != !other || (first && !json_equal(first, other))) {
            return false;
        }
    }
    return true;
}

json_t *facts_names(const json_t *const *facts, int count, bool differ)
{
    json_t *all = json_object();
    json_t *names = json_array();
    const char **list;
    const char *name;
    json_t *value;
    size_t length = 0;

    for (int i = 0; i < count; i++) {
        json_object_update_missing(all, (json_t *)facts[i]);
    }
    list = xcalloc(json_object_size(all) + 1, sizeof *list);
    json_object_foreach(all, name, value)
    {
        if (is_same_in_all(name, facts, count) != differ) {
            list[length++] = name;
        }
    }
    qsort(list, length, sizeof *list, by_rank);
    for (size_t i = 0; i < length; i++) {
        json_array_append_new(names, json_string(list[i]));
    }
    free(list);
    json_decref(all);
    return names;
}

static void value_text(const json_t *value, int most, char ret_text[VALUE_SIZE])
{
    if (json_is_string(value)) {
        snprintf(ret_text, VALUE_SIZE, "%.*s", most ? most : VALUE_SIZE - 1,
                 json_string_value(value));
    } else {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);

        snprintf(ret_text, VALUE_SIZE, "%s", text);
        free(text);
    }
}

static const char *word_of(const char *name)
{
    int rank = rank_of(name);

    return rank < COUNT_OF(known) ? known[rank].word : name;
}

static int most_of(const char *name)
{
    int rank = rank_of(name);

    return rank < COUNT_OF(known) ? known[rank].most : 0;
}

/* "driver 560.28", "no driver". */
static void add_fact(struct buf *buf, const char *name, const json_t *value, int most)
{
    const char *word = word_of(name);
    char text[VALUE_SIZE];

    if (!value) {
        buf_printf(buf, "no %s", *word ? word : name);
        return;
    }
    value_text(value, most, text);
    buf_printf(buf, "%s%s%s", word, *word ? " " : "", text);
}

char *facts_title(const json_t *facts, const json_t *names)
{
    struct buf buf = BUF_INIT;
    size_t i;
    json_t *entry;

    json_array_foreach(names, i, entry)
    {
        const char *name = json_string_value(entry);

        buf_puts(&buf, i ? " · " : "");
        add_fact(&buf, name, json_object_get(facts, name), most_of(name));
    }
    return buf_detach(&buf, NULL);
}

/* How much of two values of NAME tells them apart: not less than usual. */
static int most_that_differs(const char *name, const json_t *a, const json_t *b)
{
    char left[VALUE_SIZE];
    char right[VALUE_SIZE];

    value_text(a, most_of(name), left);
    value_text(b, most_of(name), right);
    return strcmp(left, right) == 0 ? 0 : most_of(name);
}

char *facts_change(const json_t *from, const json_t *to)
{
    const json_t *const both[] = { from, to };
    json_t *names = facts_names(both, 2, true);
    struct buf buf = BUF_INIT;
    size_t i;
    json_t *entry;

    json_array_foreach(names, i, entry)
    {
        const char *name = json_string_value(entry);
        const json_t *before = json_object_get(from, name);
        const json_t *after = json_object_get(to, name);
        int most =
            before && after ? most_that_differs(name, before, after) : most_of(name);
        char text[VALUE_SIZE];

        buf_puts(&buf, i ? ", " : "");
        add_fact(&buf, name, before, most);
        buf_puts(&buf, " → ");
        if (before && after) {
            value_text(after, most, text);
            buf_puts(&buf, text);
        } else {
            add_fact(&buf, name, after, most);
        }
    }
    json_decref(names);
    return buf_detach(&buf, NULL);
}

/* Whether NAME, without blanks and capitals, is KEY. */
static bool is_spelt(const char *name, const char *key)
{
    for (; *name; name++) {
        if (*name != ' ' && tolower((unsigned char)*name) != *key++) {
            return false;
        }
    }
    return *key == '\0';
}

const char *facts_version(const json_t *facts, const char *name)
{
    const char *key;
    json_t *value;

    for (int i = 0; i < COUNT_OF(known); i++) {
        if (strcmp(known[i].word, name) == 0) {
            return json_string_value(json_object_get(facts, known[i].name));
        }
    }
    json_object_foreach((json_t *)facts, key, value)
    {
        if (is_spelt(name, key)) {
            return json_string_value(value);
        }
    }
    return NULL;
}

bool facts_have_changed_files(const json_t *facts)
{
    static const char tail[] = "_files_changed";
    json_t *all = (json_t *)facts;
    const char *name;
    json_t *value;

    json_object_foreach(all, name, value)
    {
        size_t length = strlen(name);

        if (length >= sizeof tail &&
            strcmp(name + length - (sizeof tail - 1), tail) == 0) {
            return true;
        }
    }
    return false;
}
