#include "workloads/worker/cpu.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static void remove_all(char *text, const char *part)
{
    size_t length = strlen(part);

    for (char *at = strstr(text, part); at; at = strstr(at, part)) {
        memmove(at, at + length, strlen(at + length) + 1);
    }
}

static void squeeze_spaces(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        bool space = *from == ' ' || *from == '\t' || *from == '\n';

        if (!space) {
            *to++ = *from;
        } else if (to > text && to[-1] != ' ') {
            *to++ = ' ';
        }
    }
    if (to > text && to[-1] == ' ') {
        to--;
    }
    *to = '\0';
}

void cpu_model_class(const char *name, char ret_model[CPU_TEXT_SIZE])
{
    char *clock;

    snprintf(ret_model, CPU_TEXT_SIZE, "%s ", name);
    clock = strchr(ret_model, '@');
    if (clock) {
        *clock = '\0';
    }
    remove_all(ret_model, "(R)");
    remove_all(ret_model, "(TM)");
    remove_all(ret_model, "(tm)");
    remove_all(ret_model, " CPU");
    squeeze_spaces(ret_model);
}

static bool read_model_name(char *ret_line, int size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    bool found;

    if (!file) {
        return false;
    }
    found = false;
    while (!found && fgets(ret_line, size, file)) {
        found = strncmp(ret_line, "model name", 10) == 0 && strchr(ret_line, ':');
    }
    fclose(file);
    return found;
}

void cpu_model(char ret_model[CPU_TEXT_SIZE])
{
    char line[256];
    struct utsname machine;

    if (read_model_name(line, sizeof line)) {
        cpu_model_class(strchr(line, ':') + 1, ret_model);
        return;
    }
    snprintf(ret_model, CPU_TEXT_SIZE, "%s",
             uname(&machine) == 0 ? machine.machine : "unknown");
}

const char *cpu_vector_isa(void)
{
#if defined(__x86_64__)
    bool fma = __builtin_cpu_supports("fma");
    if (__builtin_cpu_supports("avx512f")) {
        return fma ? "avx512f avx2 fma" : "avx512f avx2";
    }
    if (__builtin_cpu_supports("avx2")) {
        return fma ? "avx2 fma" : "avx2";
    }
    if (__builtin_cpu_supports("avx")) {
        return fma ? "avx fma" : "avx";
    }
#endif
    return "baseline";
}
