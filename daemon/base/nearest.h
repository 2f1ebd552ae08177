/* What to suggest where a name is not known. */
#ifndef DAEMON_BASE_NEAREST_H
#define DAEMON_BASE_NEAREST_H

#ifdef __cplusplus
extern "C" {
#endif

/* The name most like NAME among COUNT names, by edit distance; NULL if none is near
 * (distance over a third of its length).  For error messages. */
const char *nearest_name(const char *name, const char *const *names, int count);

/* The same however far it is: NULL only where there are no names. */
const char *nearest_of(const char *name, const char *const *names, int count);

#ifdef __cplusplus
}
#endif

#endif
