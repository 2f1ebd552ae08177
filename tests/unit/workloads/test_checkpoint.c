/* A checkpoint file gives back what was saved, and nothing at all when it is not whole.
 */
#include "workloads/checkpoint/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { STATE_BYTES = 100, FILE_MAX = 256 };

static char state[STATE_BYTES];
static int file;

/* Returns the length of the file. */
static size_t saved(void)
{
    char cause[CHECKPOINT_CAUSE_SIZE] = "";
    struct stat status;

    if (!checkpoint_save(file, state, sizeof state, cause)) {
        fail_msg("not saved: %s", cause);
    }
    assert_int_equal(fstat(file, &status), 0);
    return (size_t)status.st_size;
}

static void refused(size_t bytes, const char *wanted)
{
    char got[FILE_MAX], cause[CHECKPOINT_CAUSE_SIZE] = "";

    if (checkpoint_load(file, got, bytes, cause)) {
        fail_msg("loaded although: %s", wanted);
    }
    if (!strstr(cause, wanted)) {
        fail_msg("wanted '%s' in '%s'", wanted, cause);
    }
    assert_null(strchr(cause, '\n'));
}

static void test_what_was_saved_is_loaded(void **unused)
{
    char got[STATE_BYTES] = "", cause[CHECKPOINT_CAUSE_SIZE];

    (void)unused;
    saved();
    state[7] ^= 1; /* saved again, in the place of the first */
    saved();
    assert_true(checkpoint_load(file, got, sizeof got, cause));
    assert_memory_equal(got, state, sizeof state);
}

static void test_a_file_that_is_cut_off_is_refused(void **unused)
{
    (void)unused;
    for (size_t length = saved(); length-- > 0;) {
        assert_int_equal(ftruncate(file, (off_t)length), 0);
        refused(sizeof state, "cut off");
    }
}

static void test_a_changed_file_is_refused(void **unused)
{
    size_t length = saved();

    (void)unused;
    for (size_t at = 0; at < length; at++) {
        char byte;

        saved();
        assert_int_equal(pread(file, &byte, 1, (off_t)at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(file, &byte, 1, (off_t)at), 1);
        refused(sizeof state, at < 8    ? "no checkpoint"
                              : at < 16 ? "version"
                              : at < 24 ? "bytes of state"
                                        : "damaged");
    }
}

static void test_a_file_that_is_too_long_is_refused(void **unused)
{
    size_t length = saved();

    (void)unused;
    assert_int_equal(pwrite(file, "", 1, (off_t)length), 1);
    refused(sizeof state, "too long");
}

static void test_a_state_of_another_length_is_refused(void **unused)
{
    (void)unused;
    saved();
    refused(sizeof state + 1, "holds 100 bytes of state, not 101");
}

static void test_what_cannot_be_written_says_why(void **unused)
{
    char cause[CHECKPOINT_CAUSE_SIZE] = "";
    int ends[2];

    (void)unused;
    assert_int_equal(pipe(ends), 0);
    assert_false(checkpoint_save(ends[1], state, sizeof state, cause));
    assert_non_null(strstr(cause, "cannot save the checkpoint: "));
    assert_false(checkpoint_load(ends[0], state, sizeof state, cause));
    assert_non_null(strstr(cause, "cannot read the checkpoint: "));
    close(ends[0]);
    close(ends[1]);
}

static void test_a_folder_that_is_not_there(void **unused)
{
    char cause[CHECKPOINT_CAUSE_SIZE] = "";
    const char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL;

    (void)unused;
    setenv("TMPDIR", "/nowhere", 1);
    assert_int_equal(checkpoint_create(cause), -1);
    assert_string_equal(
        cause, "cannot create a checkpoint in /nowhere: No such file or directory");
    if (kept) {
        setenv("TMPDIR", kept, 1);
    } else {
        unsetenv("TMPDIR");
    }
    free(kept);
}

static int file_open(void **unused)
{
    char cause[CHECKPOINT_CAUSE_SIZE];

    (void)unused;
    for (size_t i = 0; i < sizeof state; i++) {
        state[i] = (char)i;
    }
    file = checkpoint_create(cause);
    return file < 0;
}

static int file_close(void **unused)
{
    (void)unused;
    return close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_saved_is_loaded),
        cmocka_unit_test(test_a_file_that_is_cut_off_is_refused),
        cmocka_unit_test(test_a_changed_file_is_refused),
        cmocka_unit_test(test_a_file_that_is_too_long_is_refused),
        cmocka_unit_test(test_a_state_of_another_length_is_refused),
        cmocka_unit_test(test_what_cannot_be_written_says_why),
        cmocka_unit_test(test_a_folder_that_is_not_there),
    };

    return cmocka_run_group_tests(tests, file_open, file_close);
}
