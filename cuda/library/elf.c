#include "cuda/library/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADERS_MAX = 64, NOTES_SIZE = 4096 };

struct image {
    int fd;
    uint64_t size;
    Elf64_Ehdr header;
    Elf64_Phdr programs[HEADERS_MAX];
    int program_count;
};

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
    return pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static const char *read_headers(struct image *image)
{
    const Elf64_Ehdr *h = &image->header;

    if (!read_at(image->fd, &image->header, sizeof image->header, 0) ||
        memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64) {
        return "is no 64-bit ELF file";
    }
    if (h->e_phnum == 0 || h->e_phnum > HEADERS_MAX ||
        h->e_phentsize != sizeof(Elf64_Phdr)) {
        return "has program headers that cannot be right";
    }
    image->program_count = h->e_phnum;
    return read_at(image->fd, image->programs, sizeof(Elf64_Phdr) * h->e_phnum,
                   h->e_phoff)
               ? NULL
               : "is truncated: its program headers are missing";
}

/* NULL, or what is wrong.  The file stays open in either case. */
static const char *open_image(const char *path, struct image *ret_image)
{
    struct stat status;

    memset(ret_image, 0, sizeof *ret_image);
    ret_image->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (ret_image->fd < 0 || fstat(ret_image->fd, &status) != 0) {
        return strerror(errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return "is not a file";
    }
    ret_image->size = (uint64_t)status.st_size;
    return read_headers(ret_image);
}

static void close_image(struct image *image)
{
    if (image->fd >= 0) {
        close(image->fd);
    }
}

/* Numbers that do not add up need more than any file has. */
static uint64_t end_of(uint64_t offset, uint64_t size)
{
    uint64_t end;

    return __builtin_add_overflow(offset, size, &end) ? UINT64_MAX : end;
}

/* How long the file must be.  Sections count too: they lie behind what is mapped, so a
 * download that was cut short loses them first. */
static uint64_t needed_size(const struct image *image)
{
    const Elf64_Ehdr *h = &image->header;
    uint64_t needed = end_of(h->e_shoff, (uint64_t)h->e_shnum * h->e_shentsize);

    for (int i = 0; i < image->program_count; i++) {
        const Elf64_Phdr *p = &image->programs[i];
        uint64_t end = end_of(p->p_offset, p->p_filesz);

        needed = end > needed ? end : needed;
    }
    return needed;
}

bool elf_check(const char *path, char *ret_reason, size_t size)
{
    struct image image;
    const char *wrong = open_image(path, &image);
    bool good = false;

    if (wrong) {
        snprintf(ret_reason, size, "%s: %s", path, wrong);
    } else if (image.size < needed_size(&image)) {
        snprintf(ret_reason, size, "%s: is truncated: %llu of %llu bytes", path,
                 (unsigned long long)image.size, (unsigned long long)needed_size(&image));
    } else {
        good = true;
    }
    close_image(&image);
    return good;
}

static size_t aligned(size_t size)
{
    return (size + 3) & ~(size_t)3;
}

static bool find_build_id(const unsigned char *notes, size_t length, char *ret_id,
                          size_t size)
{
    while (length >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        size_t whole, at;

        memcpy(&note, notes, sizeof note);
        at = sizeof note + aligned(note.n_namesz);
        whole = at + aligned(note.n_descsz);
        if (whole > length) {
            return false;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + sizeof note, "GNU", 4) == 0) {
            for (size_t i = 0; i < note.n_descsz && 2 * i + 2 < size; i++) {
                snprintf(ret_id + 2 * i, 3, "%02x", notes[at + i]);
            }
            return true;
        }
        notes += whole;
        length -= whole;
    }
    return false;
}

void elf_build_id(const char *path, char *ret_id, size_t size)
{
    struct image image;
    unsigned char notes[NOTES_SIZE];
    bool found = open_image(path, &image) != NULL;

    ret_id[0] = '\0';
    for (int i = 0; i < image.program_count && !found; i++) {
        const Elf64_Phdr *p = &image.programs[i];
        size_t length = p->p_filesz < NOTES_SIZE ? p->p_filesz : NOTES_SIZE;

        found = p->p_type == PT_NOTE && read_at(image.fd, notes, length, p->p_offset) &&
                find_build_id(notes, length, ret_id, size);
    }
    close_image(&image);
}
