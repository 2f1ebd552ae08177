/* Every fuzz target with every file of its corpus, whole and damaged: what `make fuzz`
 * found once is never found again, and the targets themselves work. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"

enum { CUTS = 8, FLIPS = 24 };

struct input {
    uint8_t *data;
    size_t size;
};

static struct input read_input(const char *folder, const char *name)
{
    char *path = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    struct input input = { .data = xmalloc(1 << 20) };

    assert_non_null(file);
    input.size = fread(input.data, 1, 1 << 20, file);
    fclose(file);
    free(path);
    return input;
}

/* A copy of its own, so that reading behind the end shows. */
static void run_copy(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    uint8_t *copy = xmalloc(size ? size : 1);

    if (size) {
        memcpy(copy, data, size);
    }
    target->run(copy, size);
    free(copy);
}

/* Cut off at places all over it, and with single bits changed. */
static void run_damaged(const struct fuzz_target *target, const struct input *input)
{
    for (size_t i = 0; i < CUTS; i++) {
        run_copy(target, input->data, input->size * i / CUTS);
    }
    for (size_t i = 0; i < FLIPS && input->size; i++) {
        uint8_t *byte = &input->data[(i * 2654435761U) % input->size];
        uint8_t bit = (uint8_t)(1 << i % 8);

        *byte ^= bit;
        run_copy(target, input->data, input->size);
        *byte ^= bit;
    }
}

static int run_corpus(const struct fuzz_target *target)
{
    char *folder = xasprintf("tests/fuzz/corpus/%s", target->name);
    DIR *files = opendir(folder);
    const struct dirent *entry;
    int count = 0;

    if (!files) {
        fail_msg("%s is missing", folder);
    }
    while ((entry = readdir(files))) {
        if (entry->d_name[0] != '.') {
            struct input input = read_input(folder, entry->d_name);

            run_copy(target, input.data, input.size);
            run_damaged(target, &input);
            free(input.data);
            count++;
        }
    }
    closedir(files);
    free(folder);
    return count;
}

static void test_the_corpus(void **state)
{
    (void)state;
    for (int i = 0; i < fuzz_target_count(); i++) {
        const struct fuzz_target *target = fuzz_target_at(i);

        run_copy(target, NULL, 0);
        if (run_corpus(target) == 0) {
            fail_msg("tests/fuzz/corpus/%s is empty", target->name);
        }
    }
}

static void drop(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_corpus) };

    log_set_sink(drop, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
