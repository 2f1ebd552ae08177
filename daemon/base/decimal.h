/* Sums as people read them: from the bits of a binary64 to decimal with at least 17
 * significant digits, which name the bits uniquely. */
#ifndef DAEMON_BASE_DECIMAL_H
#define DAEMON_BASE_DECIMAL_H

enum { DECIMAL_SIZE = 48 };

/* BITS is 16 hexadecimal digits.  Sixteen places after the point ("-9.6487178248353302")
 * where that is exact enough and fits, else an exponent.  Any other text, "" too: "". */
void decimal_from_bits(const char *bits, char ret_text[DECIMAL_SIZE]);

#endif
