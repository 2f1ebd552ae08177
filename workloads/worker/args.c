#include "workloads/worker/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "workloads/worker/args_circumstances.h"
#include "workloads/worker/args_probes.h"
#include "workloads/worker/spelling.h"
#include "workloads/worker/validate.h"

enum { ITERATIONS_DEFAULT = 10, ITERATIONS_MAX = 1000 };

static const struct {
    const char *option;
    enum args_command command;
} commands[] = {
    { "--run", ARGS_RUN },         { "--check", ARGS_CHECK },
    { "--resume", ARGS_RESUME },   { "--load", ARGS_LOAD },
    { "--probe", ARGS_PROBE },     { "--catalogue", ARGS_CATALOGUE },
    { "--version", ARGS_VERSION }, { "--help", ARGS_HELP },
};

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
    const char *names[OPTION_COUNT + COUNT_OF(commands)];

    memcpy(names, option_names, sizeof(option_names));
    for (int i = 0; i < COUNT_OF(commands); i++) {
        names[OPTION_COUNT + i] = commands[i].option;
    }
    return refuse(reading, "unknown option '%.128s'; nearest: '%s'", word,
                  spelling_nearest(word, names, COUNT_OF(names)));
}

static bool read_command(struct reading *reading, const char *word, bool *ret_is_command)
{
    struct args *args = reading->args;

    for (int i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(word, commands[i].option) != 0) {
            continue;
        }
        *ret_is_command = true;
        if (args->command != ARGS_NONE) {
            return refuse(reading, "'%s' is one command too many", word);
        }
        args->command = commands[i].command;
    }
    return true;
}

static int option_find(const char *word)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (strcmp(word, option_names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static bool read_words(struct reading *reading, int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        bool is_command = false;

        if (!read_command(reading, argv[i], &is_command)) {
            return false;
        }
        if (is_command) {
            continue;
        }
        int option = option_find(argv[i]);
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

static bool parse_decimal(const char *text, uint64_t *ret_value)
{
    const char *end = args_decimal(text, UINT64_MAX, ret_value);

    return end && *end == '\0';
}

static bool read_count(struct reading *reading, enum option option, int maximum,
                       int *ret_count)
{
    const char *text = reading->values[option];
    uint64_t value = 0;

    if (!text) {
        return true;
    }
    if (!parse_decimal(text, &value) || value < 1 || value > (uint64_t)maximum) {
        return refuse(reading, "%s is '%.128s', not a number in 1 .. %d",
                      option_names[option], text, maximum);
    }
    *ret_count = (int)value;
    return true;
}

static bool read_seed(struct reading *reading)
{
    const char *text = reading->values[OPTION_SEED];

    if (text && !parse_decimal(text, &reading->args->seed)) {
        return refuse(reading, "--seed is '%.128s', not a number in 0 .. 2^64-1", text);
    }
    return true;
}

static bool read_workload(struct reading *reading)
{
    const char *name = reading->values[OPTION_WORKLOAD];

    if (!name) {
        return refuse(reading, "option '--workload' is missing");
    }
    reading->args->workload =
        registry_find(reading->registry, name, reading->backend->name);
    if (reading->args->workload) {
        return true;
    }
    const char *nearest = registry_nearest(reading->registry, name);
    return refuse(reading, "unknown workload '%.128s'; nearest: '%s'", name,
                  nearest ? nearest : "");
}

/* The index of NAME among NAMES, 0 when NAME is NULL; -1 after refusing it. */
static int choose(struct reading *reading, const char *what, const char *name,
                  const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (!name || strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    refuse(reading, "unknown %s '%.128s' of workload '%s'; nearest: '%s'", what, name,
           reading->args->workload->name, spelling_nearest(name, names, count));
    return -1;
}

static bool read_case(struct reading *reading)
{
    struct args *args = reading->args;
    const struct workload *w = args->workload;
    const char *names[WORKLOAD_CHOICES_MAX];

    for (int i = 0; i < w->variant_count; i++) {
        names[i] = w->variants[i].name;
    }
    int variant = choose(reading, "variant", reading->values[OPTION_VARIANT], names,
                         w->variant_count);
    if (variant < 0) {
        return false;
    }
    for (int i = 0; i < w->size_count; i++) {
        names[i] = w->sizes[i].name;
    }
    int size =
        choose(reading, "size", reading->values[OPTION_SIZE], names, w->size_count);
    if (size < 0) {
        return false;
    }
    for (int i = 0; i < w->dtype_count; i++) {
        names[i] = dtype_name(w->dtypes[i]);
    }
    int dtype =
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

static bool read_request(struct reading *reading)
{
    struct args *args = reading->args;
    const struct args_circumstances circumstances = {
        .contention = reading->values[OPTION_CONTENTION],
        .poison = reading->values[OPTION_POISON],
        .jitter = reading->values[OPTION_JITTER],
    };

    args->seed = 1;
    args->iterations = ITERATIONS_DEFAULT;
    return read_workload(reading) && read_case(reading) && read_seed(reading) &&
           read_count(reading, OPTION_ITERATIONS, ITERATIONS_MAX, &args->iterations) &&
           args_circumstances_parse(&circumstances, &args->circumstances,
                                    reading->message) &&
           read_place(reading);
}

static bool read_probes(struct reading *reading)
{
    const struct args_probes texts = {
        .probes = reading->values[OPTION_PROBES],
        .names = reading->values[OPTION_PROBE_NAMES],
        .steps = reading->values[OPTION_PROBE_STEPS],
        .capture = reading->values[OPTION_CAPTURE],
    };
    struct args *args = reading->args;

    return args_probes_parse(&texts, args->iterations, &args->probes, reading->message);
}

static bool refuse_probes(struct reading *reading)
{
    for (int i = OPTION_PROBES; i <= OPTION_CAPTURE; i++) {
        if (reading->values[i]) {
            return refuse(reading, "option '%s' is for --run and --resume only",
                          option_names[i]);
        }
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

/* All but the last KEPT. */
static bool refuse_options(struct reading *reading, int kept)
{
    for (int i = 0; i < OPTION_COUNT - kept; i++) {
        if (reading->values[i]) {
            return refuse(reading, "option '%s' is for --run, --check and --resume only",
                          option_names[i]);
        }
    }
    return true;
}

bool worker_args_parse(const struct registry *registry, const struct backend *backend,
                       int argc, char *const *argv, struct args *ret_args,
                       char ret_message[ARGS_MESSAGE_SIZE])
{
    *ret_args = (struct args){ 0 };
    struct reading reading = {
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
        return read_request(&reading) && read_probes(&reading);
    case ARGS_CHECK:
        return refuse_probes(&reading) && read_request(&reading);
    case ARGS_RESUME:
        return read_request(&reading) && check_resumable(&reading) &&
               read_probes(&reading);
    case ARGS_LOAD:
        return refuse_options(&reading, OPTION_COUNT - OPTION_THREADS) &&
               read_place(&reading);
    default:
        return refuse_options(&reading, 0);
    }
}
