/* How `reprod check` says what it found: as text, as JUnit XML, as Markdown, and as
 * annotations of GitHub Actions. */
#ifndef DAEMON_CLIENT_GATE_REPORT_H
#define DAEMON_CLIENT_GATE_REPORT_H

#include "daemon/base/buf.h"
#include "daemon/client/gate.h"

struct gate_report {
    const struct gate_case *cases;
    int count;
    const char *job;
    const char *server; /* "http://127.0.0.1:7357", before paths; "": it ends with this */
};

/* A line for each case that is no control, what differs first, and one for the whole. */
void gate_text(const struct gate_report *report, struct buf *buf);

/* A testsuite for each workload.  Different is a failure; unverified is an error: most
 * readers of JUnit XML count what is "skipped" as passed. */
void gate_junit(const struct gate_report *report, struct buf *buf);

/* A heading and a table. */
void gate_markdown(const struct gate_report *report, struct buf *buf);

/* "::error title=…::…" for each case that does not pass. */
void gate_annotations(const struct gate_report *report, struct buf *buf);

#endif
