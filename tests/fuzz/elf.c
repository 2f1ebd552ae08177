/* Shared libraries' files, before they are loaded. */
#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "cuda/library/elf.h"
#include "tests/fuzz/fuzz.h"

/* Of a file that is good, all that would be mapped is there. */
static void check_segments(const uint8_t *data, size_t size)
{
    Elf64_Ehdr header;

    FUZZ_CHECK(size >= sizeof header);
    memcpy(&header, data, sizeof header);
    for (int i = 0; i < header.e_phnum; i++) {
        uint64_t at = header.e_phoff + (uint64_t)i * sizeof(Elf64_Phdr);
        Elf64_Phdr program;

        FUZZ_CHECK(at <= size && size - at >= sizeof program);
        memcpy(&program, data + at, sizeof program);
        FUZZ_CHECK(program.p_offset <= size &&
                   program.p_filesz <= size - program.p_offset);
    }
}

static void run(const uint8_t *data, size_t size)
{
    char path[FUZZ_PATH_SIZE];
    int fd = fuzz_file(data, size, path);
    char reason[256] = "";
    char id[41];

    if (elf_check(path, reason, sizeof reason)) {
        check_segments(data, size);
    } else {
        FUZZ_CHECK(strncmp(reason, path, strlen(path)) == 0);
    }
    elf_build_id(path, id, sizeof id);
    FUZZ_CHECK(strspn(id, "0123456789abcdef") == strlen(id));
    close(fd);
}

FUZZ_TARGET("elf", run);
