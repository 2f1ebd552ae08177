#include "workloads/worker/spelling.h"

#include <limits.h>
#include <string.h>

enum { SPELLING_MAX = 64 };

static int minimum(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, const char *b)
{
    size_t m = strnlen(a, SPELLING_MAX);
    size_t n = strnlen(b, SPELLING_MAX);
    int row[SPELLING_MAX + 1];

    for (size_t j = 0; j <= n; j++) {
        row[j] = (int)j;
    }
    for (size_t i = 1; i <= m; i++) {
        int diagonal = row[0];

        row[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            int substitute = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            row[j] = minimum(substitute, minimum(row[j], row[j - 1]) + 1);
        }
    }
    return row[n];
}

const char *spelling_nearest(const char *wanted, const char *const *names, int count)
{
    const char *nearest = NULL;
    int least = INT_MAX;

    for (int i = 0; i < count; i++) {
        int d = distance(wanted, names[i]);

        if (d < least) {
            least = d;
            nearest = names[i];
        }
    }
    return nearest;
}
