/* Subjects: whose computation a measurement is of.  What was measured of one says nothing
 * of another: codes, agreements, costs and counts never mix them. */
#ifndef DAEMON_EVIDENCE_SUBJECT_H
#define DAEMON_EVIDENCE_SUBJECT_H

#include <jansson.h>

enum subject {
    SUBJECT_MODEL,     /* reprod's own code, which stands for a source and for its cure */
    SUBJECT_LIBRARY,   /* a call into cuDNN, cuBLAS, NCCL, oneDNN, … */
    SUBJECT_FRAMEWORK, /* TensorFlow, PyTorch, JAX, … ran itself */
    SUBJECT_COUNT
};

enum {
    SUBJECT_NAME_SIZE = 64, /* of "cuDNN", "TensorFlow"; "" for a model */
    SUBJECT_TEXT_SIZE = 160
};

/* "model", …: the word of requests, answers, tables and the store. */
const char *subject_word(enum subject subject);
int subject_parse(const char *word, enum subject *ret_subject); /* 0, or -1 */

/* The words, NULL-terminated. */
extern const char *const subject_words[];

/* For people: "our models", "cuDNN 9.12.0", "cuDNN".  FACTS, an environment's, has the
 * version that was read back from the library named NAME; NULL: none are known. */
void subject_text(enum subject subject, const char *name, const json_t *facts,
                  char ret_text[SUBJECT_TEXT_SIZE]);

/* The version of the library or framework NAME in FACTS: the fact of its name in lower
 * case, without spaces ("onnxruntime"; of PyTorch "torch").  NULL: it took no part. */
const char *subject_version(const char *name, const json_t *facts);

#endif
