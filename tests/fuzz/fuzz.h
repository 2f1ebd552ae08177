/* Fuzz targets: one for each thing that reads bytes from outside.  A target is a function
 * of any bytes that neither crashes, nor leaks, nor takes long, and aborts where a
 * property that the code promises does not hold.
 *
 * `make fuzz` runs them under libFuzzer (engine.c); tests/unit/test_fuzz.c runs them with
 * every file of tests/fuzz/corpus/NAME/, and with each of those damaged.  An input that
 * once broke something stays there. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct fuzz_target {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
};

/* At the bottom of a file: registers RUN under NAME. */
#define FUZZ_TARGET(target_name, target_run)                                             \
    static const struct fuzz_target target = { target_name, target_run };                \
    static const struct fuzz_target *const registered                                    \
        __attribute__((used, section("reprod_fuzz"))) = &target

/* A property of the code under test. */
#define FUZZ_CHECK(property)                                                             \
    do {                                                                                 \
        if (!(property)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #property); \
            abort();                                                                     \
        }                                                                                \
    } while (0)

/* The targets that are linked. */
int fuzz_target_count(void);
const struct fuzz_target *fuzz_target_at(int index);

/* DATA as text: NUL-terminated, caller frees. */
char *fuzz_text(const uint8_t *data, size_t size);

/* DATA as an anonymous file.  Returns its descriptor, which the caller closes; ret_path
 * names it for open(2) for as long. */
enum { FUZZ_PATH_SIZE = 32 };
int fuzz_file(const uint8_t *data, size_t size, char ret_path[FUZZ_PATH_SIZE]);

/* A catalogue of two workloads, wgrad (cpu and cuda) and ctc (cpu), for whoever checks
 * names.  Lives as long as the process. */
struct catalogue;
const struct catalogue *fuzz_catalogue(void);

#endif
