/* Fibers: stacks that take turns on one thread.  One side, the scheduler, resumes them;
 * they yield back to it.  Finished fibers are kept and used again, so that a body which
 * never yields costs two switches.  For the simulator and translated PTX only: nothing is
 * ever freed. */
#ifndef TESTS_SIMULATOR_FIBER_H
#define TESTS_SIMULATOR_FIBER_H

#ifdef __cplusplus
extern "C" {
#else
#include <stdbool.h>
#endif

struct fiber;

/* A fiber that will call BODY at its first fiber_resume. */
struct fiber *fiber_start(void (*body)(void));

/* Runs FIBER until it yields (true) or its body has returned (false: FIBER may not be
 * used any more).  Not to be called on a fiber. */
bool fiber_resume(struct fiber *fiber);

/* Called on a fiber: back to the scheduler, until the next fiber_resume. */
void fiber_yield(void);

#ifdef __cplusplus
}
#endif

#endif
