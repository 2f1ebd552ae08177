/* Preloaded: SIGKILL does not reach the process group whose number the file that SPARED
 * names holds, as if it were in a system call that does not end. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int kill(pid_t pid, int number)
{
    const char *path = getenv("SPARED");
    char text[16] = "";
    int file =
        path && number == SIGKILL && pid < 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (file >= 0) {
        if (read(file, text, sizeof text - 1) < 0) {
            text[0] = '\0';
        }
        close(file);
    }
    return atoi(text) == -pid && text[0] ? 0 : (int)syscall(SYS_kill, pid, number);
}
