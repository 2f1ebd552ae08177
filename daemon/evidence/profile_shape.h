/* The shape of a profile file: what can be said of it before its words mean anything. */
#ifndef DAEMON_EVIDENCE_PROFILE_SHAPE_H
#define DAEMON_EVIDENCE_PROFILE_SHAPE_H

#include <jansson.h>

#include "daemon/base/err.h"

enum { PROFILE_TOKEN_SIZE = 96 };

/* TEXT as a part of a JSON pointer (RFC 6901), cut where it is longer; returns RET_TOKEN.
 */
const char *profile_token(const char *text, char ret_token[PROFILE_TOKEN_SIZE]);

/* Every member that is there has a name of the format, lists are lists and not empty, and
 * nothing stands twice: recipes, columns, rows.  Cells are of columns of the table.
 * ERR_INVALID: FILE and the JSON pointer.  What is not there is not looked at. */
enum err_code profile_check_shape(const char *file, const json_t *json, struct err *err);

#endif
