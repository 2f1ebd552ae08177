/* What both backends of while_loop share. */
#ifndef WORKLOADS_WHILE_LOOP_H
#define WORKLOADS_WHILE_LOOP_H

/* Elements of an iteration's input and of the variable. */
enum { LOOP_DEPTH = 64, LOOP_WIDTH = 256 };

/* tf.while_loop's parallel_iterations. */
enum { LOOP_PARALLEL = 10 };

#endif
