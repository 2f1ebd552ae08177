/* Memory.  Running out of host memory ends the process: the database is safe at every
 * instant, so dying is safer than limping.  Device memory is different (a normal error).
 */
#ifndef DAEMON_BASE_MEM_H
#define DAEMON_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* All return fresh memory that the caller frees with free(); none returns NULL. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t length);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* LIST of COUNT elements of SIZE bytes, with room for one more; NULL is an empty one.  It
 * is doubled whenever COUNT is a power of two, so every element that is added calls this.
 */
void *xgrow(void *list, int64_t count, size_t size);

/* Frees a list of texts that ends with NULL, and the texts; NULL is fine. */
void free_texts(char **texts);

/* Copies TEXT into the array DEST of SIZE bytes, cut where necessary, always terminated.
 */
void copy_text(char *dest, size_t size, const char *text);

#endif
