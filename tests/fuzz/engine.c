/* What libFuzzer calls: the target that REPROD_FUZZ names, with the log switched off. */
#include "daemon/base/log.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fuzz_target *chosen;

static void drop(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("REPROD_FUZZ");

    (void)argc;
    (void)argv;
    log_set_sink(drop, NULL);
    for (int i = 0; i < fuzz_target_count(); i++) {
        if (name && strcmp(fuzz_target_at(i)->name, name) == 0) {
            chosen = fuzz_target_at(i);
            return 0;
        }
    }
    fprintf(stderr, "REPROD_FUZZ must be one of:\n");
    for (int i = 0; i < fuzz_target_count(); i++) {
        fprintf(stderr, "%s\n", fuzz_target_at(i)->name);
    }
    exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chosen->run(data, size);
    return 0;
}
