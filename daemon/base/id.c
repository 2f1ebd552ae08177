#include "daemon/base/id.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static void encode(const uint8_t bytes[16], char ret_id[ID_SIZE])
{
    /* 130 bits in 26 groups of 5: the first group holds the two zero bits and 3 of ours.
     */
    for (int i = 0; i < 26; i++) {
        unsigned group = 0;

        for (int b = i * 5 - 2; b < i * 5 + 3; b++) {
            group =
                group << 1 | (b < 0 ? 0U : (unsigned)bytes[b / 8] >> (7 - b % 8) & 1U);
        }
        ret_id[i] = alphabet[group];
    }
    ret_id[26] = '\0';
}

static void fill_random(uint8_t *bytes, size_t count)
{
    if (getrandom(bytes, count, 0) != (ssize_t)count) {
        fputs("reprod: getrandom failed\n", stderr);
        abort();
    }
}

/* The inverse of encode. */
static void decode(const char *id, uint8_t ret_bytes[16])
{
    memset(ret_bytes, 0, 16);
    for (int i = 0; i < 26; i++) {
        unsigned group = (unsigned)(strchr(alphabet, id[i]) - alphabet);

        for (int b = i * 5 - 2; b < i * 5 + 3; b++) {
            if (b >= 0 && group >> (i * 5 + 2 - b) & 1U) {
                ret_bytes[b / 8] |= (uint8_t)(1U << (7 - b % 8));
            }
        }
    }
}

void id_first(int64_t at_ms, char ret_id[ID_SIZE])
{
    uint8_t bytes[16] = { 0 };

    for (int i = 0; i < 6; i++) {
        bytes[i] = (uint8_t)((uint64_t)at_ms >> (40 - 8 * i));
    }
    encode(bytes, ret_id);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t last[16]; /* the latest id */
static int64_t last_ms = -1;

void id_follow(const char *id)
{
    uint8_t bytes[16];

    decode(id, bytes);
    pthread_mutex_lock(&lock);
    if (memcmp(bytes, last, sizeof last) > 0) {
        memcpy(last, bytes, sizeof last);
        last_ms = 0;
        for (int i = 0; i < 6; i++) {
            last_ms = last_ms << 8 | last[i];
        }
    }
    pthread_mutex_unlock(&lock);
}

void id_new(int64_t now_ms, char ret_id[ID_SIZE])
{
    pthread_mutex_lock(&lock);
    if (now_ms > last_ms) {
        last_ms = now_ms;
        for (int i = 0; i < 6; i++) {
            last[i] = (uint8_t)((uint64_t)now_ms >> (40 - 8 * i));
        }
        fill_random(last + 6, 10);
        last[6] &= 0x7f; /* room for the increments below */
    } else {
        for (int i = 15; i >= 0 && ++last[i] == 0; i--) {
        }
    }
    encode(last, ret_id);
    pthread_mutex_unlock(&lock);
}

bool id_valid(const char *text)
{
    return strlen(text) == 26 && strspn(text, alphabet) == 26 && text[0] <= '7';
}
