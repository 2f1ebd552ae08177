/* A localisation for a terminal, made from its JSON, so that the two cannot disagree.
 * Pure. */
#ifndef API_RENDER_LOCALISATION_TEXT_H
#define API_RENDER_LOCALISATION_TEXT_H

#include "daemon/base/buf.h"

/* Appends JSON (one object) as lines. */
void localisation_text(const char *json, struct buf *buf);

#endif
