/* The same content as JSON, for a terminal or a spreadsheet: a list ("items") becomes a
 * table, everything else lines of "name  value".  Whatever the JSON says is the only
 * source, so the representations cannot disagree.  Pure. */
#ifndef API_RENDER_TABULATE_H
#define API_RENDER_TABULATE_H

#include <stdbool.h>

#include "daemon/base/buf.h"

/* Appends JSON (one object) as text or CSV.  COLUMNS names what the table shows, in
 * order, separated by blanks: a path of members ("progress.runs_done"), optionally with
 * another title for the text ("progress.runs_done:done").  CSV holds the table alone, the
 * paths as its header. */
void tabulate(const char *json, const char *columns, bool csv, struct buf *buf);

#endif
