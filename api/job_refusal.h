/* How a job that cannot be made of its request is refused. */
#ifndef API_JOB_REFUSAL_H
#define API_JOB_REFUSAL_H

#include "api/http/request.h"

/* Replies with r->problems, of which there is one at least.  Where all that is wrong are
 * names, and a stack is not usable or a host has said no hello yet, nobody knows whether
 * they are wrong: then 503, which says what is missing. */
void refuse_job(struct request *r);

#endif
