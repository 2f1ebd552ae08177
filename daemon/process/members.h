/* Members of the JSON objects that agents and workers send: taken out all at once, with
 * errors that name the member. */
#ifndef DAEMON_PROCESS_MEMBERS_H
#define DAEMON_PROCESS_MEMBERS_H

#include <jansson.h>
#include <stddef.h>

#include "daemon/base/err.h"

/* json_unpack of jansson, without JSON_STRICT, for one flat object: FORMAT has s, s%, I,
 * F and o members.  Texts and JSON are borrowed from OBJECT.  ERR_PROTOCOL names the
 * first member that is missing or of another type; then some are set and some are not. */
enum err_code members_unpack(const json_t *object, struct err *err, const char *format,
                             ...);

/* ERR_PROTOCOL where TEXT, the member NAME, is not that many hex digits in lower case:
 * equal values have to be equal texts. */
enum err_code member_check_hex(const char *name, const char *text, size_t digits,
                               struct err *err);

#endif
