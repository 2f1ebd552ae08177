/* Functions that do not compile in this repository, because each has a safer twin that
 * costs nothing.  Force-included by the Makefile. */
#ifndef DAEMON_BASE_BANNED_H
#define DAEMON_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok gmtime localtime
#pragma GCC poison asctime ctime atoi atol atof gets tmpnam mktemp

#endif
