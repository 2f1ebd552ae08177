/* What a database file may be: on which file systems it may lie. */
#include "db/connection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_network_file_systems_are_refused(void **state)
{
    (void)state;
    assert_string_equal(filesystem_refused(0x6969, "nfs4"), "NFS");
    assert_string_equal(filesystem_refused((long)0xfe534d42, "cifs"), "SMB2");
    assert_string_equal(filesystem_refused((int32_t)0xff534d42, "cifs"), "CIFS");
    assert_string_equal(filesystem_refused(0x0bd00bd0, "lustre"), "Lustre");
    assert_string_equal(filesystem_refused(0x47504653, "gpfs"), "GPFS");
    assert_string_equal(filesystem_refused(0x00c36400, "ceph"), "Ceph");
    assert_string_equal(filesystem_refused(0x01021997, "9p"), "9P");
    assert_string_equal(filesystem_refused(0x5346414f, "afs"), "AFS");
}

static void test_local_file_systems_are_fine(void **state)
{
    (void)state;
    assert_null(filesystem_refused(0xef53, "ext4"));
    assert_null(filesystem_refused(0x58465342, "xfs"));
    assert_null(filesystem_refused((long)0x9123683e, "btrfs"));
    assert_null(filesystem_refused(0x01021994, "tmpfs"));
    assert_null(filesystem_refused(0x794c7630, "overlay"));
}

static void test_fuse_is_refused_unless_known_to_be_local(void **state)
{
    (void)state;
    assert_string_equal(filesystem_refused(0x65735546, "fuse.sshfs"), "fuse.sshfs");
    assert_string_equal(filesystem_refused(0x65735546, ""), "FUSE");
    assert_null(filesystem_refused(0x65735546, "fuseblk"));
    assert_null(filesystem_refused(0x65735546, "fuse.fuse-overlayfs"));
}

static void test_the_folder_is_asked(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(filesystem_check("/nonexistent/reprod.db", &err), ERR_IO);
    assert_int_equal(filesystem_check("/dev/shm/reprod.db", &err), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_network_file_systems_are_refused),
        cmocka_unit_test(test_local_file_systems_are_fine),
        cmocka_unit_test(test_fuse_is_refused_unless_known_to_be_local),
        cmocka_unit_test(test_the_folder_is_asked),
    };

    return cmocka_run_group_tests_name("connection", tests, NULL, NULL);
}
