/* How long a service takes to answer: scale-probe PORT ROUNDS PAUSE_MS PATH …
 *
 * In each round it requests every PATH once, each on a connection of its own as curl
 * does, and waits PAUSE_MS.  Prints a line for each answer: milliseconds from connect to
 * the last byte, status, bytes, path. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void request(int port, const char *path)
{
    static char answer[1 << 20];
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    char text[1024];
    long bytes = 0, status = 0;
    ssize_t length;
    double begun = now_ms();
    int size, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    size =
        snprintf(text, sizeof text,
                 "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0 ||
        write(fd, text, (size_t)size) != size) {
        die(path);
    }
    while ((length = read(fd, answer, sizeof answer)) > 0) {
        if (!status && length > 12) {
            status = strtol(answer + 9, NULL, 10);
        }
        bytes += length;
    }
    if (length < 0) {
        die(path);
    }
    close(fd);
    printf("%.4f %ld %ld %s\n", now_ms() - begun, status, bytes, path);
}

int main(int argc, char **argv)
{
    int port, rounds;
    long pause;

    if (argc < 5) {
        fprintf(stderr, "scale-probe PORT ROUNDS PAUSE_MS PATH ...\n");
        return 2;
    }
    port = (int)strtol(argv[1], NULL, 10);
    rounds = (int)strtol(argv[2], NULL, 10);
    pause = strtol(argv[3], NULL, 10);
    for (int i = 0; i < rounds; i++) {
        for (int path = 4; path < argc; path++) {
            request(port, argv[path]);
        }
        nanosleep(&(struct timespec){ pause / 1000, pause % 1000 * 1000000 }, NULL);
    }
    return 0;
}
