/* Commands that outlive a service that was killed: an srun whose node is gone, or an ssh
 * whose network is, never sees that its input has ended.
 *
 * What a service starts carries its mark: the data folder, of which there is one service
 * at a time, and which life of it.  A later life ends the commands of earlier ones.  Only
 * those that were started here are ended, and what is in their process group: leaders of
 * a session that write to a pipe.  What such a command put into the background on purpose
 * (a master of ssh) does not.
 *
 * What can go wrong: /proc does not tell, since the command is another user's.  It is
 * left alone.  Loop thread only. */
#ifndef DAEMON_PROCESS_LEFTOVERS_H
#define DAEMON_PROCESS_LEFTOVERS_H

/* What is started from here on carries the mark of this life.  DATA is the folder, which
 * is there; else nothing is marked. */
void leftovers_open(const char *data);

/* "REPROD_SERVICE=…", of leftovers_mark_name; NULL: nothing is marked. */
char *leftovers_mark(void);
extern const char leftovers_mark_name[];

/* Sends signal NUMBER to what earlier lives left.  Returns how many commands that were.
 */
int leftovers_end(int number);

#endif
