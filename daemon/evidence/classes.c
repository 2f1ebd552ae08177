#include "daemon/evidence/classes.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

void classes_init(struct classes *classes, struct class_column *columns, int count)
{
    *classes = (struct classes){ .columns = columns, .column_count = count };
}

static void release_row(struct class_row *row)
{
    free(row->digests);
    free(row->letters);
    free(row->entries);
}

void classes_release(struct classes *classes)
{
    for (int i = 0; i < classes->row_count; i++) {
        release_row(&classes->rows[i]);
    }
    for (int i = 0; i < classes->column_count; i++) {
        json_decref(classes->columns[i].facts);
    }
    free(classes->columns);
    free(classes->rows);
    *classes = (struct classes){ 0 };
}

static int compare_seeds(uint64_t a, uint64_t b)
{
    int64_t left = (int64_t)a;
    int64_t right = (int64_t)b;

    return left < right ? -1 : left > right;
}

int classes_compare_keys(const struct case_key *a, const struct case_key *b)
{
    int order = strcmp(a->workload, b->workload);

    order = order ? order : strcmp(a->variant, b->variant);
    order = order ? order : strcmp(a->size, b->size);
    order = order ? order : strcmp(a->dtype, b->dtype);
    order = order ? order : compare_seeds(a->seed, b->seed);
    return order ? order : a->version - b->version;
}

static struct class_entry nothing(void)
{
    return (struct class_entry){ .digest = -1, .verdict = VERDICT_UNMEASURED };
}

/* Where the row of KEY is, or would be. */
static int find_row(const struct classes *classes, const struct case_key *key,
                    bool *ret_found)
{
    int low = 0;
    int high = classes->row_count;

    *ret_found = false;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = classes_compare_keys(key, &classes->rows[middle].key);

        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        low = order > 0 ? middle + 1 : low;
        high = order < 0 ? middle : high;
    }
    return low;
}

struct class_row *classes_row(struct classes *classes, const struct class_cell *cell)
{
    bool found;
    int at = find_row(classes, &cell->key, &found);
    struct class_row *row;

    if (found) {
        return &classes->rows[at];
    }
    classes->rows = xgrow(classes->rows, classes->row_count, sizeof *classes->rows);
    row = &classes->rows[at];
    memmove(row + 1, row, (size_t)(classes->row_count++ - at) * sizeof *row);
    *row = (struct class_row){ .key = cell->key,
                               .is_control = cell->is_control,
                               .subject = cell->subject };
    copy_text(row->subject_name, sizeof row->subject_name, cell->subject_name);
    row->entries = xcalloc((size_t)classes->column_count + 1, sizeof *row->entries);
    for (int i = 0; i < classes->column_count; i++) {
        row->entries[i] = nothing();
    }
    return row;
}

static int digest_of(struct class_row *row, const char *digest)
{
    for (int i = 0; i < row->digest_count; i++) {
        if (strcmp(row->digests[i], digest) == 0) {
            return i;
        }
    }
    row->digests = xgrow(row->digests, row->digest_count, sizeof *row->digests);
    copy_text(row->digests[row->digest_count], DIGEST_TEXT_SIZE, digest);
    return row->digest_count++;
}

void classes_put(struct class_row *row, int column, const struct class_cell *cell)
{
    row->entries[column] = (struct class_entry){
        .cell = cell->id,
        .runs = cell->runs,
        .digest = cell->digest[0] ? digest_of(row, cell->digest) : -1,
        .verdict = cell->verdict,
        .apart = cell->apart,
        .members = 1,
    };
}

void classes_add(struct classes *classes, int column, const struct class_cell *cell)
{
    classes_put(classes_row(classes, cell), column, cell);
}

void classes_drop_empty(struct classes *classes)
{
    int count = 0;

    for (int c = 0; c < classes->column_count; c++) {
        if (classes->columns[c].members == 0) {
            json_decref(classes->columns[c].facts);
            continue;
        }
        classes->columns[count] = classes->columns[c];
        for (int r = 0; r < classes->row_count; r++) {
            classes->rows[r].entries[count] = classes->rows[r].entries[c];
        }
        count++;
    }
    classes->column_count = count;
}

static bool entries_agree(const struct class_entry *a, const struct class_entry *b)
{
    if (!a->cell || !b->cell) {
        return true;
    }
    return a->digest == b->digest && (a->digest >= 0 || a->verdict == b->verdict);
}

/* How far a verdict of one digest is from reproducible. */
static int weakness(enum verdict verdict)
{
    return verdict == VERDICT_REPRODUCIBLE ? 0
           : verdict == VERDICT_STALE      ? 1
           : verdict == VERDICT_FAILING    ? 3
                                           : 2;
}

static void merge_entry(struct class_entry *into, const struct class_entry *entry)
{
    if (!entry->cell) {
        return;
    }
    if (!into->cell) {
        *into = *entry;
        return;
    }
    into->members += entry->members;
    into->runs += entry->runs;
    if (weakness(entry->verdict) > weakness(into->verdict)) {
        into->verdict = entry->verdict;
    }
}

/* Whether columns FIRST to LAST contradict each other in no row. */
static bool columns_agree(const struct classes *classes, int first, int last)
{
    for (int r = 0; r < classes->row_count; r++) {
        const struct class_entry *entries = classes->rows[r].entries;
        struct class_entry all = nothing();

        for (int c = first; c <= last; c++) {
            if (!entries_agree(&all, &entries[c])) {
                return false;
            }
            merge_entry(&all, &entries[c]);
        }
    }
    return true;
}

static int end_of_host(const struct classes *classes, int first)
{
    int last = first;

    while (last + 1 < classes->column_count &&
           strcmp(classes->columns[first].host, classes->columns[last + 1].host) == 0) {
        last++;
    }
    return last;
}

/* Columns FIRST to LAST become column TO, which is none of those behind them. */
static void merge_columns(struct classes *classes, int first, int last, int to)
{
    struct class_column column = classes->columns[first];

    for (int c = first + 1; c <= last; c++) {
        const struct class_column *other = &classes->columns[c];

        column.members += other->members;
        column.first_ms =
            other->first_ms < column.first_ms ? other->first_ms : column.first_ms;
        column.last_ms =
            other->last_ms > column.last_ms ? other->last_ms : column.last_ms;
        json_decref(other->facts);
    }
    if (last > first) {
        memcpy(column.id, column.host, sizeof column.id);
    }
    classes->columns[to] = column;
    for (int r = 0; r < classes->row_count; r++) {
        struct class_entry *entries = classes->rows[r].entries;
        struct class_entry all = nothing();

        for (int c = first; c <= last; c++) {
            merge_entry(&all, &entries[c]);
        }
        entries[to] = all;
    }
}

void classes_merge_hosts(struct classes *classes)
{
    int count = 0;
    int next = 0;

    while (next < classes->column_count) {
        int last = end_of_host(classes, next);

        if (!columns_agree(classes, next, last)) {
            last = next;
            while (end_of_host(classes, last) > last) {
                merge_columns(classes, last, last, count++);
                last++;
            }
            next = last;
        }
        merge_columns(classes, next, last, count++);
        next = last + 1;
    }
    classes->column_count = count;
}

/* Which of the digests, or behind them of the verdicts, an entry shows. */
static int shown(const struct class_row *row, const struct class_entry *e)
{
    return e->digest >= 0 ? e->digest : row->digest_count + (int)e->verdict;
}

/* Whether one that COUNT devices show comes before BEST, which BEST_COUNT show.  Of
 * equally many, the smallest digest does, so that the order in which cells came in does
 * not matter. */
static bool is_more(const struct class_row *row, int i, int count, int best,
                    int best_count)
{
    if (count != best_count || count == 0) {
        return count > best_count;
    }
    return i < row->digest_count && strcmp(row->digests[i], row->digests[best]) < 0;
}

/* What most devices show, as the first of them has it. */
static const struct class_entry *most_shown(const struct classes *classes,
                                            const struct class_row *row)
{
    int kinds = row->digest_count + VERDICT_COUNT;
    int *counts = xcalloc(2 * (size_t)kinds, sizeof *counts);
    int *firsts = counts + kinds;
    int best = 0;
    int first;

    for (int c = classes->column_count - 1; c >= 0; c--) {
        const struct class_entry *e = &row->entries[c];

        if (e->cell) {
            counts[shown(row, e)] += e->members;
            firsts[shown(row, e)] = c;
        }
    }
    for (int i = 1; i < kinds; i++) {
        best = is_more(row, i, counts[i], best, counts[best]) ? i : best;
    }
    first = firsts[best];
    free(counts);
    return &row->entries[first];
}

/* Whether each column shows what most show. */
static bool *conforming_columns(const struct classes *classes)
{
    bool *conforms = xcalloc((size_t)classes->column_count + 1, sizeof *conforms);

    memset(conforms, true, (size_t)classes->column_count * sizeof *conforms);
    for (int r = 0; r < classes->row_count; r++) {
        const struct class_row *row = &classes->rows[r];
        const struct class_entry *most = most_shown(classes, row);

        for (int c = 0; c < classes->column_count; c++) {
            conforms[c] = conforms[c] && entries_agree(most, &row->entries[c]);
        }
    }
    return conforms;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* How many hosts the columns that CONFORM are on. */
static int count_hosts(const struct classes *classes, const bool *conforms)
{
    const char **hosts = xcalloc((size_t)classes->column_count + 1, sizeof(char *));
    int count = 0;
    int different = 0;

    for (int c = 0; c < classes->column_count; c++) {
        if (conforms[c]) {
            hosts[count++] = classes->columns[c].host;
        }
    }
    qsort(hosts, (size_t)count, sizeof(char *), compare_texts);
    for (int i = 0; i < count; i++) {
        different += i == 0 || strcmp(hosts[i - 1], hosts[i]) != 0;
    }
    free(hosts);
    return different;
}

static void add_member(struct class_column *into, const struct class_column *column)
{
    if (into->members == 0) {
        *into = *column;
        return;
    }
    into->members += column->members;
    into->first_ms =
        column->first_ms < into->first_ms ? column->first_ms : into->first_ms;
    into->last_ms = column->last_ms > into->last_ms ? column->last_ms : into->last_ms;
    if (strcmp(into->model, column->model) != 0) {
        into->model[0] = '\0';
    }
    json_decref(column->facts);
}

/* The entries of a row: first that of all that conform, then the others. */
static void merge_row(struct class_row *row, int count, const bool *conforms)
{
    struct class_entry all = nothing();
    int to = count;

    for (int c = count - 1; c >= 0; c--) {
        if (conforms[c]) {
            merge_entry(&all, &row->entries[c]);
        } else {
            row->entries[--to] = row->entries[c];
        }
    }
    memmove(row->entries + 1, row->entries + to,
            (size_t)(count - to) * sizeof *row->entries);
    row->entries[0] = all;
}

void classes_merge_majority(struct classes *classes)
{
    bool *conforms = conforming_columns(classes);
    struct class_column majority = { .members = 0 };
    int hosts = count_hosts(classes, conforms);
    int count = classes->column_count;
    int to = count;
    int merged = 0;

    for (int c = 0; c < count; c++) {
        merged += conforms[c];
    }
    if (merged < 2) {
        free(conforms);
        return;
    }
    for (int c = count - 1; c >= 0; c--) {
        if (conforms[c]) {
            add_member(&majority, &classes->columns[c]);
        } else {
            classes->columns[--to] = classes->columns[c];
        }
    }
    majority.hosts = hosts;
    majority.host[0] = '\0';
    copy_text(majority.id, sizeof majority.id, "majority");
    memmove(classes->columns + 1, classes->columns + to,
            (size_t)(count - to) * sizeof *classes->columns);
    classes->columns[0] = majority;
    for (int r = 0; r < classes->row_count; r++) {
        merge_row(&classes->rows[r], count, conforms);
    }
    classes->column_count = count - merged + 1;
    free(conforms);
}

struct tally {
    const char *digest;
    int index, first, columns;
};

static int by_first(const void *a, const void *b)
{
    return ((const struct tally *)a)->first - ((const struct tally *)b)->first;
}

static int by_columns(const void *a, const void *b)
{
    const struct tally *left = a;
    const struct tally *right = b;

    return left->columns != right->columns ? right->columns - left->columns
                                           : strcmp(left->digest, right->digest);
}

static void settle_row(const struct classes *classes, struct class_row *row, bool by_size)
{
    struct tally *tallies = xcalloc((size_t)row->digest_count + 1, sizeof *tallies);
    bool varies = false;
    bool beside = false; /* it varies where others are comparable */

    for (int i = 0; i < row->digest_count; i++) {
        tallies[i] = (struct tally){ row->digests[i], i, classes->column_count, 0 };
    }
    for (int c = 0; c < classes->column_count; c++) {
        const struct class_entry *e = &row->entries[c];

        if (e->digest < 0 && e->runs > 0 && e->verdict != VERDICT_FAILING) {
            varies |= !e->apart || e->verdict == VERDICT_VARIES;
            beside |= !e->apart;
        }
        if (e->digest >= 0) {
            struct tally *t = &tallies[e->digest];

            t->first = c < t->first ? c : t->first;
            t->columns += e->members;
        }
    }
    qsort(tallies, (size_t)row->digest_count, sizeof *tallies,
          by_size ? by_columns : by_first);
    row->letters = xcalloc((size_t)row->digest_count + 1, sizeof *row->letters);
    for (int i = 0; i < row->digest_count; i++) {
        row->letters[tallies[i].index] = i;
    }
    row->varies = varies;
    row->differs = row->digest_count > 1 || (beside && row->digest_count > 0);
    free(tallies);
}

void classes_settle(struct classes *classes, bool by_size)
{
    for (int r = 0; r < classes->row_count; r++) {
        settle_row(classes, &classes->rows[r], by_size);
    }
}

int classes_letter(const struct class_row *row, const struct class_entry *entry)
{
    return entry->digest < 0 ? -1 : row->letters[entry->digest];
}

int classes_count(const struct class_row *row)
{
    return row->digest_count;
}

const char *classes_name(int letter, char ret_name[CLASS_NAME_SIZE])
{
    char reversed[CLASS_NAME_SIZE];
    int length = 0;

    /* Without a zero: behind Z comes AA.  An int has seven at most. */
    for (int n = letter + 1; n > 0; n = (n - 1) / 26) {
        reversed[length++] = (char)('A' + (n - 1) % 26);
    }
    for (int i = 0; i < length; i++) {
        ret_name[i] = reversed[length - 1 - i];
    }
    ret_name[length] = '\0';
    return ret_name;
}
