#include "daemon/base/decimal.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void decimal_from_bits(const char *bits, char ret_text[DECIMAL_SIZE])
{
    uint64_t word;
    double value;
    double size;

    ret_text[0] = '\0';
    if (strlen(bits) != 16 || strspn(bits, "0123456789abcdefABCDEF") != 16) {
        return;
    }
    word = strtoull(bits, NULL, 16);
    memcpy(&value, &word, sizeof value);
    size = fabs(value);
    if (value == 0 || (size >= 1 && size < 1e15)) {
        snprintf(ret_text, DECIMAL_SIZE, "%.16f", value);
    } else {
        snprintf(ret_text, DECIMAL_SIZE, "%.17g", value);
    }
}
