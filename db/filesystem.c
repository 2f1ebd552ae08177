#include "db/filesystem.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "daemon/base/mem.h"

static const struct {
    unsigned long f_type; /* statfs(2), linux/magic.h, or the file system's own source */
    const char *name;
} refused[] = {
    { 0x6969, "NFS" },        { 0x517b, "SMB" },        { 0xff534d42, "CIFS" },
    { 0xfe534d42, "SMB2" },   { 0x564c, "NCP" },        { 0x73757245, "Coda" },
    { 0x5346414f, "AFS" },    { 0x6b414653, "AFS" },    { 0x01021997, "9P" },
    { 0x00c36400, "Ceph" },   { 0x0bd00bd0, "Lustre" }, { 0x47504653, "GPFS" },
    { 0x19830326, "BeeGFS" }, { 0xaad7aaea, "PanFS" },  { 0x20030528, "OrangeFS" },
    { 0x7461636f, "OCFS2" },  { 0x01161970, "GFS2" },   { 0x013111a8, "IBRIX" },
    { 0xbacbacbc, "VMHGFS" }, { 0x786f4256, "VBOXSF" },
};

static const unsigned long FUSE = 0x65735546;

const char *filesystem_refused(long f_type, const char *mount_type)
{
    /* 32 bits in every case; some systems sign-extend them. */
    unsigned long type = (unsigned long)f_type & 0xffffffff;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (refused[i].f_type == type) {
            return refused[i].name;
        }
    }
    if (type == FUSE && strcmp(mount_type, "fuseblk") != 0 &&
        strcmp(mount_type, "fuse.fuse-overlayfs") != 0) {
        return *mount_type ? mount_type : "FUSE";
    }
    return NULL;
}

/* The type of the mount that holds DEVICE; "" if it is not found.  Lines are
 * "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS…] - TYPE SOURCE OPTIONS" (proc(5)). */
static void mount_type(dev_t device, char *ret_type, size_t size)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t capacity = 0;
    char wanted[32];

    *ret_type = '\0';
    if (!file) {
        return;
    }
    snprintf(wanted, sizeof wanted, "%u:%u", major(device), minor(device));
    while (getline(&line, &capacity, file) > 0) {
        char found[32];
        char type[64];
        const char *rest = strstr(line, " - ");

        if (rest && sscanf(line, "%*s %*s %31s", found) == 1 &&
            strcmp(found, wanted) == 0 && sscanf(rest, " - %63s", type) == 1) {
            copy_text(ret_type, size, type);
        }
    }
    free(line);
    fclose(file);
}

enum err_code filesystem_check(const char *path, struct err *err)
{
    char *copy = xstrdup(path);
    const char *directory = dirname(copy);
    enum err_code code = ERR_OK;
    struct statfs fs;
    struct stat st;
    char type[64];
    const char *name;

    if (statfs(directory, &fs) != 0 || stat(directory, &st) != 0) {
        code = err_set_errno(err, errno, "%s", directory);
        goto out;
    }
    mount_type(st.st_dev, type, sizeof type);
    name = filesystem_refused((long)fs.f_type, type);
    if (name) {
        code = err_set(err, ERR_UNSUPPORTED,
                       "%s is on %s: a database there would be damaged in silence; use a "
                       "local disk",
                       directory, name);
    }
out:
    free(copy);
    return code;
}
