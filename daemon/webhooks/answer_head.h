/* What a receiver answers: the status and the headers that matter, of HTTP/1.x.  The body
 * is not read.  Pure. */
#ifndef DAEMON_WEBHOOKS_ANSWER_HEAD_H
#define DAEMON_WEBHOOKS_ANSWER_HEAD_H

#include <stddef.h>

enum { ANSWER_HEAD_MOST = 16384, RETRY_AFTER_SIZE = 64 };

struct answer_head {
    int status;                         /* the final one: 1xx are passed over */
    char retry_after[RETRY_AFTER_SIZE]; /* "": it has none */
};

enum answer_head_state { ANSWER_HEAD_MORE, ANSWER_HEAD_WHOLE, ANSWER_HEAD_BAD };

/* Of what was received so far.  MORE: it goes on; of more than ANSWER_HEAD_MOST bytes,
 * BAD. */
enum answer_head_state answer_head_read(const char *bytes, size_t length,
                                        struct answer_head *ret_head);

#endif
