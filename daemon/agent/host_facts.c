#include "daemon/agent/host_facts.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "daemon/process/wire.h"

enum { LINE_SIZE = 256 };

/* The value of the first line "KEY … : VALUE" of the file PATH, or, for "", its first
 * line; left out where there is none. */
static void add_line(json_t *facts, const char *name, const char *path, const char *key)
{
    FILE *file = fopen(path, "re");
    char line[LINE_SIZE];
    bool found = false;

    while (file && !found && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        const char *value = *key ? colon : line;

        found = strncmp(line, key, strlen(key)) == 0 && value;
        if (found) {
            value += *key ? 1 + strspn(value + 1, " \t") : 0;
            json_object_set_new(facts, name, wire_string(value, strcspn(value, "\n")));
        }
    }
    if (file) {
        fclose(file);
    }
}

json_t *host_facts(void)
{
    json_t *facts = json_object();
    struct utsname host;

    if (uname(&host) == 0) {
        json_object_set_new(facts, "kernel",
                            wire_string(host.release, strlen(host.release)));
    }
    add_line(facts, "cpu_microcode", "/proc/cpuinfo", "microcode");
    add_line(facts, "cpu_governor",
             "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "");
    return facts;
}
