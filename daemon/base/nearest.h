/* What to suggest where a name is not known. */
#ifndef DAEMON_BASE_NEAREST_H
#define DAEMON_BASE_NEAREST_H

#ifdef __cplusplus
extern "C" {
#endif

enum { NEAREST_HINT_SIZE = 320 };

/* The name most like NAME among COUNT names, by edit distance; NULL if none is near
 * (distance over a third of its length) and none, or several, begin with it.  For error
 * messages. */
const char *nearest_name(const char *name, const char *const *names, int count);

/* The same however far it is: NULL only where there are no names. */
const char *nearest_of(const char *name, const char *const *names, int count);

/* "; did you mean 'conv_wgrad'?": what is most like NAME, or "" if nothing is near.
 * Returns RET_HINT. */
const char *nearest_hint(const char *name, const char *const *names, int count,
                         char ret_hint[NEAREST_HINT_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
