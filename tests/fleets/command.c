/* The command of fleets whose workload is external: sums of a few numbers, as a program
 * that knows nothing but workloads/PROTOCOL.md.  Its argument is a file with a line
 * "DEVICE VARIANT same" for each device that flips a bit of a sum there, or "... another"
 * where it is another bit of another sum in each iteration.
 *
 * Variants: unordered, the control, adds in an order that is drawn; ordered and patched
 * add from the first to the last and in pairs. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { SUMS = 8, TERMS = 64 };

static float x[SUMS][TERMS], sums[SUMS];

static const char *get(const char *name)
{
    const char *text = getenv(name);

    if (!text) {
        fprintf(stderr, "%s is not set: start this through reprod\n", name);
        exit(2);
    }
    return text;
}

static uint32_t draw(void)
{
    uint32_t drawn;

    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) {
        perror("getrandom");
        exit(2);
    }
    return drawn;
}

/* FNV-1a of 128 bits. */
static void digest(const void *data, size_t size, char text[33])
{
    const unsigned char *bytes = data;
    const unsigned __int128 prime = ((unsigned __int128)1 << 88) | 0x13b;
    unsigned __int128 hash =
        ((unsigned __int128)0x6c62272e07bb0142 << 64) | 0x62b821756295c58d;

    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * prime;
    }
    snprintf(text, 33, "%016llx%016llx", (unsigned long long)(hash >> 64),
             (unsigned long long)hash);
}

/* How device DEVICE is wrong in VARIANT: "same", "another", or "": it is not. */
static const char *wrong_how(const char *path, const char *device, const char *variant)
{
    static char how[16];
    char of_device[64], of_variant[64];
    FILE *file = fopen(path, "r");

    if (!file) {
        perror(path);
        exit(2);
    }
    while (fscanf(file, "%63s %63s %15s", of_device, of_variant, how) == 3) {
        if (strcmp(of_device, device) == 0 && strcmp(of_variant, variant) == 0) {
            fclose(file);
            return how;
        }
    }
    fclose(file);
    return "";
}

static float in_pairs(const float *terms, int count)
{
    return count == 1 ? terms[0]
                      : in_pairs(terms, count / 2) +
                            in_pairs(terms + count / 2, count - count / 2);
}

static void compute(const char *variant, const char *wrong)
{
    bool drawn = strcmp(variant, "unordered") == 0;

    for (int s = 0; s < SUMS; s++) {
        sums[s] = strcmp(variant, "patched") == 0 ? in_pairs(x[s], TERMS) : 0;
        for (int i = 0; i < TERMS && strcmp(variant, "patched") != 0; i++) {
            int j = drawn ? i + (int)(draw() % (uint32_t)(TERMS - i)) : i;
            float term = x[s][j];

            x[s][j] = x[s][i];
            x[s][i] = term;
            sums[s] += term;
        }
    }
    if (wrong[0]) {
        uint32_t what = strcmp(wrong, "another") == 0 ? draw() : 0;
        uint32_t word;

        memcpy(&word, &sums[what / 16 % SUMS], sizeof word);
        word ^= 1u << what % 16;
        memcpy(&sums[what / 16 % SUMS], &word, sizeof word);
    }
}

static void fill(uint64_t state)
{
    for (int s = 0; s < SUMS; s++) {
        for (int i = 0; i < TERMS; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            x[s][i] = (float)(int64_t)state / (float)(1u << (state >> 59));
        }
    }
}

int main(int argc, char **argv)
{
    FILE *out = fdopen((int)strtol(get("REPROD_RESULT_FD"), NULL, 10), "w");
    int iterations = (int)strtol(get("REPROD_ITERATIONS"), NULL, 10);
    const char *variant = get("REPROD_VARIANT"), *device = get("REPROD_DEVICE");
    const char *wrong = wrong_how(argc > 1 ? argv[1] : "", device, variant);
    char inputs[33], outputs[33];

    fill(strtoull(get("REPROD_SEED"), NULL, 10));
    digest(x, sizeof x, inputs);
    fprintf(out,
            "{\"event\":\"start\",\"v\":1,\"pid\":%d,\"nonce\":\"%s\",\"workload\":"
            "\"%s\",\"version\":%s,\"variant\":\"%s\",\"size\":\"%s\",\"dtype\":\"%s\","
            "\"seed\":\"%s\",\"iterations\":%d,\"threads\":1,\"backend\":\"%s\","
            "\"device\":\"%s\",\"algorithm\":\"%s\",\"claim\":null,\"input_digest\":"
            "\"%s\",\"environment\":{},\"libraries\":[]}\n",
            (int)getpid(), get("REPROD_NONCE"), get("REPROD_WORKLOAD"),
            get("REPROD_VERSION"), variant, get("REPROD_SIZE"), get("REPROD_DTYPE"),
            get("REPROD_SEED"), iterations, get("REPROD_BACKEND"), device, variant,
            inputs);
    for (int i = 0; i < iterations; i++) {
        double sum = 0;
        uint64_t bits;

        compute(variant, wrong);
        for (int s = 0; s < SUMS; s++) {
            sum += sums[s];
        }
        memcpy(&bits, &sum, sizeof bits);
        digest(sums, sizeof sums, outputs);
        fprintf(out,
                "{\"event\":\"iteration\",\"i\":%d,\"digest\":\"%s\",\"weight_sum\":"
                "\"%016llx\",\"loss\":null,\"ms\":0.01,\"algorithm\":\"%s\"}\n",
                i, outputs, (unsigned long long)bits, variant);
    }
    fill(strtoull(get("REPROD_SEED"), NULL, 10)); /* what a control permuted */
    digest(x, sizeof x, inputs);
    fprintf(out,
            "{\"event\":\"end\",\"outcome\":\"completed\",\"cause\":null,\"iterations\":"
            "%d,\"elements\":%d,\"bytes_hashed\":%zu,\"device\":\"%s\",\"input_digest\":"
            "\"%s\"}\n",
            iterations, SUMS, iterations * sizeof sums, device, inputs);
    return fclose(out) == 0 ? 0 : 4;
}
