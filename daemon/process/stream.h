/* Pipes and sockets on the loop: a reader of bytes and a writer of JSON lines.
 *
 * Both are embedded in their owner, who may free himself once the callback of each close
 * was called.  Loop thread only. */
#ifndef DAEMON_PROCESS_STREAM_H
#define DAEMON_PROCESS_STREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct stream_reader {
    /* DATA is borrowed for the call. */
    void (*bytes)(void *arg, const char *data, size_t length);
    /* End of file, or an error; at most once, not after stream_reader_close. */
    void (*end)(void *arg);
    void *arg;

    uv_pipe_t pipe; /* the rest is private */
    bool closing, ended, paused;
    void (*closed)(void *arg);
};

/* Starts reading.  Takes ownership of FD, which must be something epoll can wait for.
 * bytes, end and arg are set before. */
void stream_reader_open(struct stream_reader *reader, uv_loop_t *loop, int fd);

/* Backpressure: while paused, nothing is read. */
void stream_reader_pause(struct stream_reader *reader, bool paused);

/* CLOSED(arg) is called once the handle is gone.  To be called once. */
void stream_reader_close(struct stream_reader *reader, void (*closed)(void *arg));

struct stream_writer {
    /* The queue went under LOW after having been over HIGH bytes, and the other way
     * round; optional. */
    void (*pressure)(void *arg, bool high);
    /* A write failed; at most once, not after stream_writer_close. */
    void (*broken)(void *arg, const char *cause);
    void *arg;
    size_t high, low;

    uv_pipe_t pipe; /* the rest is private */
    bool closing, failed, is_high;
    void (*closed)(void *arg);
};

/* Takes ownership of FD.  pressure, broken, arg, high and low are set before. */
void stream_writer_open(struct stream_writer *writer, uv_loop_t *loop, int fd);

/* Queues LINE, compact, with a newline.  Takes ownership of the reference. */
void stream_writer_send(struct stream_writer *writer, json_t *line);

/* Bytes that are queued. */
size_t stream_writer_queued(const struct stream_writer *writer);

/* Drops what is queued; CLOSED(arg) is called once the handle is gone.  Once. */
void stream_writer_close(struct stream_writer *writer, void (*closed)(void *arg));

/* BREATHE(arg) is called after whatever any reader was given: where hundreds of streams
 * have something to say at once, others have turns in between.  NULL: nothing is. */
void stream_readers_breathe(void (*breathe)(void *arg), void *arg);

#endif
