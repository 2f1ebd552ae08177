#include "daemon/process/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

enum { READ_SIZE = 65536 };

/* libuv fills the buffer and calls back at once, on the only thread that reads. */
static char scratch[READ_SIZE];

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    (void)handle;
    (void)suggested;
    *ret_buf = uv_buf_init(scratch, sizeof scratch);
}

static struct {
    void (*call)(void *arg);
    void *arg;
} breath;

void stream_readers_breathe(void (*breathe)(void *arg), void *arg)
{
    breath.call = breathe;
    breath.arg = arg;
}

static void read_cb(uv_stream_t *stream, ssize_t length, const uv_buf_t *buf)
{
    struct stream_reader *reader = stream->data;

    if (length > 0) {
        reader->bytes(reader->arg, buf->base, (size_t)length);
        if (breath.call) {
            breath.call(breath.arg);
        }
    } else if (length < 0) {
        uv_read_stop(stream);
        reader->ended = true;
        reader->end(reader->arg);
    }
}

void stream_reader_open(struct stream_reader *reader, uv_loop_t *loop, int fd)
{
    int rc = uv_pipe_init(loop, &reader->pipe, 0);

    reader->pipe.data = reader;
    reader->closing = reader->ended = reader->paused = false;
    assert(rc == 0);
    rc = uv_pipe_open(&reader->pipe, fd);
    assert(rc == 0);
    rc = uv_read_start((uv_stream_t *)&reader->pipe, alloc_cb, read_cb);
    assert(rc == 0);
    (void)rc;
}

void stream_reader_pause(struct stream_reader *reader, bool paused)
{
    if (reader->closing || reader->ended || reader->paused == paused) {
        return;
    }
    reader->paused = paused;
    if (paused) {
        uv_read_stop((uv_stream_t *)&reader->pipe);
    } else {
        uv_read_start((uv_stream_t *)&reader->pipe, alloc_cb, read_cb);
    }
}

static void reader_closed_cb(uv_handle_t *handle)
{
    struct stream_reader *reader = handle->data;

    reader->closed(reader->arg);
}

void stream_reader_close(struct stream_reader *reader, void (*closed)(void *arg))
{
    assert(!reader->closing);
    reader->closing = true;
    reader->closed = closed;
    uv_close((uv_handle_t *)&reader->pipe, reader_closed_cb);
}

struct write {
    uv_write_t request;
    struct stream_writer *writer;
    char *text;
};

void stream_writer_open(struct stream_writer *writer, uv_loop_t *loop, int fd)
{
    int rc = uv_pipe_init(loop, &writer->pipe, 0);

    writer->pipe.data = writer;
    writer->closing = writer->failed = writer->is_high = false;
    assert(rc == 0);
    rc = uv_pipe_open(&writer->pipe, fd);
    assert(rc == 0);
    (void)rc;
}

size_t stream_writer_queued(const struct stream_writer *writer)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&writer->pipe);
}

static void tell_pressure(struct stream_writer *writer)
{
    size_t queued = stream_writer_queued(writer);
    bool high = queued > (writer->is_high ? writer->low : writer->high);

    if (high != writer->is_high) {
        writer->is_high = high;
        if (writer->pressure) {
            writer->pressure(writer->arg, high);
        }
    }
}

static void write_cb(uv_write_t *request, int status)
{
    struct write *write = request->data;
    struct stream_writer *writer = write->writer;

    free(write->text);
    free(write);
    if (writer->closing || writer->failed) {
        return;
    }
    if (status < 0) {
        writer->failed = true;
        writer->broken(writer->arg, uv_strerror(status));
        return;
    }
    tell_pressure(writer);
}

void stream_writer_send(struct stream_writer *writer, json_t *line)
{
    struct write *write;
    uv_buf_t buf;
    size_t length;

    if (writer->closing || writer->failed) {
        json_decref(line);
        return;
    }
    write = xcalloc(1, sizeof *write);
    write->writer = writer;
    write->text = json_dumps(line, JSON_COMPACT);
    json_decref(line);
    assert(write->text);
    length = strlen(write->text);
    write->text[length] = '\n'; /* in place of the NUL: the length is known */
    write->request.data = write;
    buf = uv_buf_init(write->text, (unsigned)length + 1);
    if (uv_write(&write->request, (uv_stream_t *)&writer->pipe, &buf, 1, write_cb) < 0) {
        write_cb(&write->request, UV_EPIPE);
        return;
    }
    tell_pressure(writer);
}

static void writer_closed_cb(uv_handle_t *handle)
{
    struct stream_writer *writer = handle->data;

    writer->closed(writer->arg);
}

void stream_writer_close(struct stream_writer *writer, void (*closed)(void *arg))
{
    assert(!writer->closing);
    writer->closing = true;
    writer->closed = closed;
    uv_close((uv_handle_t *)&writer->pipe, writer_closed_cb);
}
