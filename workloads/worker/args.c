#include "workloads/worker/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/nearest.h"

enum {
    ITERATIONS_DEFAULT = 10,
    ITERATIONS_MAX = 1000,
    PATTERN_DIGITS = 8,
    CHECK_SECONDS_MAX = 3600
};
static const uint64_t STEP_MAX = 1000000000000;

/* From ARGS_RUN on. */
static const char *const command_names[] = {
    "--run",       "--check",     "--resume",  "--load", "--probe",
    "--processes", "--catalogue", "--version", "--help",
};
_Static_assert(COUNT_OF(command_names) == ARGS_HELP, "names");

enum option {
    OPTION_WORKLOAD,
    OPTION_VARIANT,
    OPTION_SIZE,
    OPTION_DTYPE,
    OPTION_SEED,
    OPTION_ITERATIONS,
    OPTION_CONTENTION,
    OPTION_POISON,
    OPTION_JITTER,
    OPTION_PROBES,
    OPTION_PROBE_NAMES,
    OPTION_PROBE_STEPS,
    OPTION_CAPTURE,
    OPTION_CHECKED,
    OPTION_PASSED,
    OPTION_THREADS, /* this and the next say where, not what */
    OPTION_DEVICE,
    OPTION_COUNT
};

static const char *const option_names[OPTION_COUNT] = {
    [OPTION_WORKLOAD] = "--workload",
    [OPTION_VARIANT] = "--variant",
    [OPTION_SIZE] = "--size",
    [OPTION_DTYPE] = "--dtype",
    [OPTION_SEED] = "--seed",
    [OPTION_ITERATIONS] = "--iterations",
    [OPTION_CONTENTION] = "--contention",
    [OPTION_POISON] = "--memory-poison",
    [OPTION_JITTER] = "--allocation-jitter",
    [OPTION_PROBES] = "--probes",
    [OPTION_PROBE_NAMES] = "--probe-names",
    [OPTION_PROBE_STEPS] = "--probe-steps",
    [OPTION_CAPTURE] = "--capture",
    [OPTION_CHECKED] = "--checked",
    [OPTION_PASSED] = "--passed",
    [OPTION_THREADS] = "--threads",
    [OPTION_DEVICE] = "--device",
};

/* One reading of a command line; values[] are NULL until given. */
struct reading {
    const struct registry *registry;
    const struct backend *backend;
    struct args *args;
    char *message;
    const char *values[OPTION_COUNT];
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct reading *reading,
                                                         const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reading->message, ARGS_MESSAGE_SIZE, format, arguments);
    va_end(arguments);
    return false;
}

static bool refuse_option(struct reading *reading, const char *word)
{
    const char *names[OPTION_COUNT + COUNT_OF(command_names)];

    memcpy(names, option_names, sizeof option_names);
    memcpy(names + OPTION_COUNT, command_names, sizeof command_names);
    return refuse(reading, "unknown option '%.128s'; nearest: '%s'", word,
                  nearest_of(word, names, COUNT_OF(names)));
}

/* The index of WORD among NAMES; -1 when it is none of them. */
static int index_of(const char *word, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(word, names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static bool read_words(struct reading *reading, int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        int command = index_of(argv[i], command_names, COUNT_OF(command_names));
        int option = index_of(argv[i], option_names, OPTION_COUNT);

        if (command >= 0 && reading->args->command != ARGS_NONE) {
            return refuse(reading, "'%s' is one command too many", argv[i]);
        }
        if (command >= 0) {
            reading->args->command = (enum args_command)(ARGS_RUN + command);
            continue;
        }
        if (option < 0) {
            return refuse_option(reading, argv[i]);
        }
        if (reading->values[option]) {
            return refuse(reading, "option '%s' is given twice", argv[i]);
        }
        if (i + 1 == argc || strncmp(argv[i + 1], "--", 2) == 0) {
            return refuse(reading, "option '%s' lacks its value", argv[i]);
        }
        reading->values[option] = argv[++i];
    }
    return true;
}

/* Reads the decimal digits at TEXT, up to the character AFTER: no sign, no space, no
 * base. Returns what follows it; NULL when it is not there, nor digits before it, or the
 * value is above MAXIMUM. */
static const char *read_decimal(const char *text, char after, uint64_t maximum,
                                uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *end = text;

    for (; *end >= '0' && *end <= '9'; end++) {
        uint64_t digit = (uint64_t)(*end - '0');

        if (value > maximum / 10 || (value == maximum / 10 && digit > maximum % 10)) {
            return NULL;
        }
        value = 10 * value + digit;
    }
    if (end == text || *end != after) {
        return NULL;
    }
    *ret_value = value;
    return end + 1;
}

static bool read_count(struct reading *reading, enum option option, int maximum,
                       int *ret_count)
{
    const char *text = reading->values[option];
    uint64_t value = 0;

    if (!text) {
        return true;
    }
    if (!read_decimal(text, '\0', (uint64_t)maximum, &value) || value < 1) {
        return refuse(reading, "%s is '%.128s', not a number in 1 .. %d",
                      option_names[option], text, maximum);
    }
    *ret_count = (int)value;
    return true;
}

static bool read_seed(struct reading *reading)
{
    const char *text = reading->values[OPTION_SEED];

    if (text && !read_decimal(text, '\0', UINT64_MAX, &reading->args->seed)) {
        return refuse(reading, "--seed is '%.128s', not a number in 0 .. 2^64-1", text);
    }
    return true;
}

static bool read_workload(struct reading *reading)
{
    const char *name = reading->values[OPTION_WORKLOAD];
    const char *nearest;

    if (!name) {
        return refuse(reading, "option '--workload' is missing");
    }
    reading->args->workload =
        registry_find(reading->registry, name, reading->backend->name);
    if (reading->args->workload) {
        return true;
    }
    nearest = registry_nearest(reading->registry, name);
    return refuse(reading, "unknown workload '%.128s'; nearest: '%s'", name,
                  nearest ? nearest : "");
}

/* The index of NAME among NAMES, 0 when NAME is NULL; -1 after refusing it. */
static int choose(struct reading *reading, const char *what, const char *name,
                  const char *const *names, int count)
{
    int found = name ? index_of(name, names, count) : 0;

    if (found < 0) {
        refuse(reading, "unknown %s '%.128s' of workload '%s'; nearest: '%s'", what, name,
               reading->args->workload->name, nearest_of(name, names, count));
    }
    return found;
}

static bool read_case(struct reading *reading)
{
    struct args *args = reading->args;
    const struct workload *w = args->workload;
    const char *names[WORKLOAD_CHOICES_MAX];
    int variant;
    int size;
    int dtype;

    for (int i = 0; i < w->variant_count; i++) {
        names[i] = w->variants[i].name;
    }
    variant = choose(reading, "variant", reading->values[OPTION_VARIANT], names,
                     w->variant_count);
    if (variant < 0) {
        return false;
    }
    for (int i = 0; i < w->size_count; i++) {
        names[i] = w->sizes[i].name;
    }
    size = choose(reading, "size", reading->values[OPTION_SIZE], names, w->size_count);
    if (size < 0) {
        return false;
    }
    for (int i = 0; i < w->dtype_count; i++) {
        names[i] = dtype_name(w->dtypes[i]);
    }
    dtype =
        choose(reading, "dtype", reading->values[OPTION_DTYPE], names, w->dtype_count);
    if (dtype < 0) {
        return false;
    }
    args->variant = &w->variants[variant];
    args->size = &w->sizes[size];
    args->dtype = w->dtypes[dtype];
    return true;
}

static bool read_place(struct reading *reading)
{
    reading->args->threads = reading->backend->threads_default;
    reading->args->device = reading->values[OPTION_DEVICE];
    return read_count(reading, OPTION_THREADS, reading->backend->threads_max,
                      &reading->args->threads);
}

static bool parse_poison(const char *text, struct circumstances *c)
{
    c->is_poisoned = true;
    if (strcmp(text, "random") == 0) {
        c->pattern = (uint32_t)circumstances_random();
        return true;
    }
    c->pattern = (uint32_t)strtoul(text, NULL, 16);
    return strlen(text) == PATTERN_DIGITS &&
           strspn(text, "0123456789abcdef") == PATTERN_DIGITS;
}

static bool parse_jitter(const char *text, struct circumstances *c)
{
    c->is_jittered = true;
    if (strcmp(text, "random") == 0) {
        c->jitter = circumstances_random();
        return true;
    }
    return read_decimal(text, '\0', UINT64_MAX, &c->jitter) != NULL;
}

/* Draws what is random. */
static bool read_circumstances(struct reading *reading)
{
    struct circumstances *c = &reading->args->circumstances;
    const char *poison = reading->values[OPTION_POISON];
    const char *jitter = reading->values[OPTION_JITTER];

    if (!read_count(reading, OPTION_CONTENTION, CONTENTION_MAX, &c->contention)) {
        return false;
    }
    if (poison && !parse_poison(poison, c)) {
        return refuse(reading,
                      "--memory-poison is '%.128s', neither 'random' nor %d hex digits",
                      poison, PATTERN_DIGITS);
    }
    if (jitter && !parse_jitter(jitter, c)) {
        return refuse(reading,
                      "--allocation-jitter is '%.128s', neither 'random' nor a number in "
                      "0 .. 2^64-1",
                      jitter);
    }
    return true;
}

static bool read_request(struct reading *reading)
{
    struct args *args = reading->args;

    args->seed = 1;
    args->iterations = ITERATIONS_DEFAULT;
    return read_workload(reading) && read_case(reading) && read_seed(reading) &&
           read_count(reading, OPTION_ITERATIONS, ITERATIONS_MAX, &args->iterations) &&
           read_circumstances(reading) && read_place(reading);
}

static bool parse_steps(const char *text, struct probes_request *request)
{
    uint64_t first = 0, last = 0;
    const char *rest = read_decimal(text, '-', STEP_MAX, &first);

    if (!rest || !read_decimal(rest, '\0', STEP_MAX, &last) || first > last) {
        return false;
    }
    request->first_step = (int64_t)first;
    request->last_step = (int64_t)last;
    return true;
}

static bool place_allowed(const char *place)
{
    return place[0] && strlen(place) <= PROBES_PLACE_MAX;
}

static bool parse_capture(const char *text, int iterations,
                          struct probes_request *request)
{
    uint64_t iteration, step;
    const char *rest = read_decimal(text, ':', (uint64_t)iterations - 1, &iteration);
    const char *place = rest ? read_decimal(rest, ':', STEP_MAX, &step) : NULL;

    if (!place || !place_allowed(place)) {
        return false;
    }
    request->capture = true;
    request->capture_iteration = (int)iteration;
    request->capture_step = (int64_t)step;
    request->capture_place = place;
    return true;
}

static bool parse_every(const char *text, struct probes_request *request)
{
    uint64_t every = 0;
    bool ok = !text || read_decimal(text, '\0', STEP_MAX, &every);

    request->every = (int64_t)every;
    return ok;
}

static bool read_probes(struct reading *reading)
{
    const char *probes = reading->values[OPTION_PROBES];
    const char *names = reading->values[OPTION_PROBE_NAMES];
    const char *steps = reading->values[OPTION_PROBE_STEPS];
    const char *capture = reading->values[OPTION_CAPTURE];
    int iterations = reading->args->iterations;
    struct probes_request *r = &reading->args->probes;

    *r = (struct probes_request){ .last_step = INT64_MAX, .names = names };
    if (!parse_every(probes, r)) {
        return refuse(reading,
                      "--probes is '%.128s', not a number of steps (1: each, 0: none)",
                      probes);
    }
    if (r->every == 0 && (names || steps)) {
        return refuse(reading,
                      "option '%s' says which probes, but --probes asks for none",
                      names ? "--probe-names" : "--probe-steps");
    }
    if (names && !place_allowed(names)) {
        return refuse(reading, "--probe-names is empty or longer than %d bytes",
                      PROBES_PLACE_MAX);
    }
    if (steps && !parse_steps(steps, r)) {
        return refuse(reading, "--probe-steps is '%.128s', not two numbers as in '10-20'",
                      steps);
    }
    if (capture && !parse_capture(capture, iterations, r)) {
        return refuse(reading,
                      "--capture is '%.128s', not ITERATION:STEP:PLACE with an iteration "
                      "below %d",
                      capture, iterations);
    }
    return true;
}

static bool check_resumable(struct reading *reading)
{
    const struct workload *workload = reading->args->workload;

    return workload->resume ||
           refuse(reading, "workload '%s' has no second process that could resume it",
                  workload->name);
}

/* Refuses the options from FIRST until END, which are for COMMANDS. */
static bool refuse_options(struct reading *reading, enum option first, enum option end,
                           const char *commands)
{
    for (enum option i = first; i < end; i++) {
        if (reading->values[i]) {
            return refuse(reading, "option '%s' is for %s only", option_names[i],
                          commands);
        }
    }
    return true;
}

static bool read_checked(struct reading *reading)
{
    const char *passed = reading->values[OPTION_PASSED];
    struct args *args = reading->args;

    if (!read_count(reading, OPTION_CHECKED, CHECK_SECONDS_MAX, &args->check_seconds)) {
        return false;
    }
    if (passed && !args->check_seconds) {
        return refuse(reading, "--passed is for --checked only");
    }
    args->has_passed = passed != NULL;
    if (passed && !digest_parse(passed, &args->passed)) {
        return refuse(reading, "--passed is '%.128s', not a digest of 32 hex digits",
                      passed);
    }
    return true;
}

bool worker_args_parse(const struct registry *registry, const struct backend *backend,
                       int argc, char *const *argv, struct args *ret_args,
                       char ret_message[ARGS_MESSAGE_SIZE])
{
    static const char compute_commands[] = "--run, --check and --resume";
    struct reading reading;

    *ret_args = (struct args){ 0 };
    reading = (struct reading){
        .registry = registry,
        .backend = backend,
        .args = ret_args,
        .message = ret_message,
    };
    if (!read_words(&reading, argc, argv)) {
        return false;
    }
    switch (ret_args->command) {
    case ARGS_NONE:
        return refuse(&reading, "no command; --help lists them");
    case ARGS_RUN:
        return read_request(&reading) && read_probes(&reading) && read_checked(&reading);
    case ARGS_CHECK:
        return refuse_options(&reading, OPTION_PROBES, OPTION_CHECKED,
                              "--run and --resume") &&
               refuse_options(&reading, OPTION_CHECKED, OPTION_THREADS, "--run") &&
               read_request(&reading);
    case ARGS_RESUME:
        return refuse_options(&reading, OPTION_CHECKED, OPTION_THREADS, "--run") &&
               read_request(&reading) && check_resumable(&reading) &&
               read_probes(&reading);
    case ARGS_LOAD:
        return refuse_options(&reading, 0, OPTION_THREADS, compute_commands) &&
               read_place(&reading);
    default:
        return refuse_options(&reading, 0, OPTION_COUNT, compute_commands);
    }
}
