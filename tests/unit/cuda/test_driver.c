/* The driver's libraries are found where the dynamic linker does not look, and what it
 * finds comes first. */
#include "cuda/library/driver.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const char made_up[] = "libreprod-made-up.so.1";

/* A folder with a library of that name: a link to the C library's own. */
static void test_a_folder_that_has_it(void **state)
{
    char folder[] = "/tmp/reprod-driver-XXXXXX";
    const char *const folders[] = { "/nonexistent", folder, NULL };
    char path[128];
    Dl_info libm;
    void *known = dlopen("libm.so.6", RTLD_NOW);

    (void)state;
    assert_non_null(known);
    assert_int_not_equal(dladdr(dlsym(known, "cos"), &libm), 0);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/%s", folder, made_up);
    assert_int_equal(symlink(libm.dli_fname, path), 0);
    assert_null(driver_open(made_up, folders + 2));
    assert_non_null(dlsym(driver_open(made_up, folders), "cos"));
    unlink(path);
    rmdir(folder);
}

static void test_one_that_cannot_be_loaded_is_passed_over(void **state)
{
    char folder[] = "/tmp/reprod-driver-XXXXXX";
    const char *const folders[] = { folder, NULL };
    char path[128];
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libreprod-other.so.1", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("no library", file);
    fclose(file);
    assert_null(driver_open("libreprod-other.so.1", folders));
    unlink(path);
    rmdir(folder);
}

static void test_the_linker_comes_first(void **state)
{
    static const char *const nowhere[] = { NULL };

    (void)state;
    assert_ptr_equal(driver_open("libm.so.6", driver_folders),
                     driver_open("libm.so.6", nowhere));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_folder_that_has_it),
        cmocka_unit_test(test_one_that_cannot_be_loaded_is_passed_over),
        cmocka_unit_test(test_the_linker_comes_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
