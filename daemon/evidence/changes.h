/* What changed on a host: what its agent says of it now, compared with what it said
 * before.  Pure.
 *
 * Compared is what changes only when somebody changes it: {"host":{…},
 * "stacks":{NAME:{…}}, "devices":{ID:{…}}}, each with names and values.  Error counters
 * are not among it.  A stack or device that is away keeps what it last said, and so does
 * a value that could not be read: coming back as before is no change. */
#ifndef DAEMON_EVIDENCE_CHANGES_H
#define DAEMON_EVIDENCE_CHANGES_H

#include <jansson.h>

/* Of an agent's hello.  New reference. */
json_t *changes_facts(const json_t *hello);

/* An array of {"stack","device","name","before","after"}, one for each value of a host,
 * stack or device that is known in BEFORE and other in NOW.  *RET_MERGED: what is known
 * now; new reference, as is what is returned. */
json_t *changes_compare(const json_t *before, const json_t *now, json_t **ret_merged);

/* The same of texts, JSON objects ("" BEFORE: nothing was known): the array as text, NULL
 * where nothing changed; and what is known now.  Caller frees both, and *RET_WORDS, the
 * array as people read it. */
char *changes_compare_texts(const char *before, const char *now, char **ret_merged,
                            char **ret_words);

/* "kernel 6.1 → 6.2, vbios 96 → 97 (devices GPU-1, GPU-2)": the same change of several is
 * told once.  Caller frees. */
char *changes_text(const json_t *changes);

#endif
