/* The loader's cache (ld.so.cache) is read as glibc writes it; a damaged one is refused
 * without reading beyond its end. */
#include "../../../cuda/library/ldcache.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* A cache as ldconfig writes it: two entries of one name, the first of 32 bits. */
struct cache {
    struct header header;
    struct entry entries[3];
    char texts[64];
};

enum { TEXTS = offsetof(struct cache, texts) };

static const struct cache good = {
    .header = { .magic = "glibc-ld.so.cache1.1", .count = 3, .strings_length = 64 },
    .entries = { { 0x0003, TEXTS, TEXTS + 8, 0, 0 },
                 { 0x0303, TEXTS, TEXTS + 20, 0, 0 },
                 { 0x0301, TEXTS + 32, TEXTS + 8, 0, 0 } },
    .texts = "libx.so\0/lib32/libx\0/lib64/libx\0libold.so\0libtail.so",
};

static char file[] = "/tmp/reprod-ldcache-XXXXXX";
static char path[128];

/* Searches the first SIZE bytes of CACHE. */
static bool find(const struct cache *cache, size_t size, const char *name)
{
    FILE *out = fopen(file, "we");

    assert_non_null(out);
    assert_int_equal(fwrite(cache, 1, size, out), size);
    fclose(out);
    return ldcache_find(file, name, path, sizeof path);
}

static void test_64_bit_libraries_are_found(void **state)
{
    (void)state;
    assert_true(find(&good, sizeof good, "libx.so"));
    assert_string_equal(path, "/lib64/libx");
    assert_false(find(&good, sizeof good, "libx"));
    assert_false(find(&good, sizeof good, "libold.so"));
    assert_false(find(&good, sizeof good, "/lib64/libx"));
}

static void test_a_path_that_does_not_fit(void **state)
{
    char little[8];

    (void)state;
    assert_true(find(&good, sizeof good, "libx.so"));
    assert_false(ldcache_find(file, "libx.so", little, sizeof little));
}

/* Read to any length, and with any offset, it is refused or found, and nothing breaks. */
static void test_damaged_caches(void **state)
{
    struct cache bad = good;

    (void)state;
    for (size_t size = 0; size < TEXTS + 31; size++) {
        assert_false(find(&good, size, "libx.so"));
    }
    bad.header.count = UINT32_MAX;
    assert_false(find(&bad, sizeof bad, "libx.so"));
    bad = good;
    bad.header.magic[0] = 'x';
    assert_false(find(&bad, sizeof bad, "libx.so"));
    bad = good;
    bad.entries[1].path = UINT32_MAX;
    assert_false(find(&bad, sizeof bad, "libx.so"));
    bad = good;
    memset(bad.texts + 32, 'x', sizeof bad.texts - 32);
    bad.entries[1].path = TEXTS + 40;
    assert_false(find(&bad, sizeof bad, "libx.so"));
    assert_false(ldcache_find("/nonexistent/cache", "libx.so", path, sizeof path));
    assert_false(ldcache_find("/", "libx.so", path, sizeof path));
}

static int make_file(void **state)
{
    int fd = mkstemp(file);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_64_bit_libraries_are_found),
        cmocka_unit_test(test_a_path_that_does_not_fit),
        cmocka_unit_test(test_damaged_caches),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
