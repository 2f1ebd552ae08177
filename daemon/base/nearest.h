/* What to suggest where a name is not known. */
#ifndef DAEMON_BASE_NEAREST_H
#define DAEMON_BASE_NEAREST_H

/* The name most like NAME among COUNT names, by edit distance; NULL if none is near
 * (distance over a third of its length).  For error messages. */
const char *nearest_name(const char *name, const char *const *names, int count);

#endif
