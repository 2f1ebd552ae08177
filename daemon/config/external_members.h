/* The members of an external workload and of its variants, each by itself: what it may
 * hold, and what it holds where nothing was said.  What concerns several of them is
 * checked in external.c. */
#ifndef DAEMON_CONFIG_EXTERNAL_MEMBERS_H
#define DAEMON_CONFIG_EXTERNAL_MEMBERS_H

#include <jansson.h>

#include "daemon/base/err.h"

enum { EXTERNAL_CHOICES_MAX = 64 };

/* ERR_INVALID: the message begins with WHERE and the member as JSON pointer.  `variants`
 * only has to be there. */
enum err_code external_complete_workload(json_t *workload, const char *where,
                                         struct err *err);
enum err_code external_complete_variant(json_t *variant, const char *where,
                                        struct err *err);

#endif
