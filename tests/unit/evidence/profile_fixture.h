/* A small profile table for tests, whole or with one thing changed. */
#ifndef TESTS_UNIT_EVIDENCE_PROFILE_FIXTURE_H
#define TESTS_UNIT_EVIDENCE_PROFILE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/evidence/profile.h"

static const char good[] =
    "{'table':'t','title':'T','source':'S','recipes':[{'name':'TDO','title':'do'}],"
    "'columns':[{'id':'c1','title':'C','recipes':['TDO']},"
    "           {'id':'c2','title':'D','recipes':['TDO']}],"
    "'rows':[{'workload':'w','title':'W','subject':'model','cells':{'c1':{"
    "  'model':{'none':'unordered','TDO':'raises'},'documented':'NS!'}}}]}";

/* JSON with ' for ", and the first FROM replaced by TO. */
static inline struct profile_table *parse(const char *from, const char *to,
                                          struct err *err)
{
    char text[2048];
    const char *at = from ? strstr(good, from) : NULL;
    struct profile_table *table = NULL;

    if (at) {
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to,
                 at + strlen(from));
    } else {
        snprintf(text, sizeof text, "%s", good);
    }
    for (char *c = text; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return profile_parse("t.json", text, strlen(text), &table, err) == ERR_OK ? table
                                                                              : NULL;
}

#endif
