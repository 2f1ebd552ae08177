/* Arrays whose length the compiler knows. */
#ifndef DAEMON_BASE_ARRAY_H
#define DAEMON_BASE_ARRAY_H

/* The number of elements of ARRAY, which must not be a pointer. */
#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

#endif
