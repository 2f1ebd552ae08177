/* What environments differ in: their facts (an object of names and values) compared, in
 * words for people.  Pure. */
#ifndef DAEMON_EVIDENCE_FACTS_H
#define DAEMON_EVIDENCE_FACTS_H

#include <jansson.h>
#include <stdbool.h>

/* The names, in order, that differ among COUNT objects (DIFFER), or that are the same in
 * all of them.  Where one lacks a fact that another has, they differ.  New array. */
json_t *facts_names(const json_t *const *facts, int count, bool differ);

/* "driver 560.28 · cuDNN 9.12.0": FACTS as far as NAMES has them; "" if NAMES is empty.
 * Caller frees. */
char *facts_title(const json_t *facts, const json_t *names);

/* The version of what FACTS call NAME for people ("PyTorch", "ONNX Runtime"); NULL: they
 * do not say.  Borrowed from FACTS. */
const char *facts_version(const json_t *facts, const char *name);

/* "driver 550.54 → 560.28, no cuDNN → cuDNN 9.12.0": all that differs; "" if nothing
 * does. Caller frees. */
char *facts_change(const json_t *from, const json_t *to);

/* Whether FACTS, of an installed framework, say that some of its files are not what was
 * installed ("numpy_files_changed"). */
bool facts_have_changed_files(const json_t *facts);

#endif
