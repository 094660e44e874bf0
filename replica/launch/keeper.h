
/*
 * The process between an adapter and its engine: it sees to it that no process
 * of the engine outlives the adapter.
 *
 * An engine is many processes.  SIGKILL of vLLM's front leaves its core and its
 * workers on the device for ever; SIGKILL of the adapter would leave all of
 * them.  So there are keepers:
 *
 *   adapter --- keeper --- keeper --- engine --- all that this starts
 *
 * Each of the first three is a subreaper (common/child/tree.h).  A keeper whose
 * child or adapter has ended kills its children until there are none, and ends:
 * its end proves that no process of the engine is left.  The adapter does the
 * same when a keeper dies.
 *
 *               its child has ended: reported
 *   WATCHING ----------------------------------------> ENDING ----> end
 *      |  ^      adapter gone, or says so             kill children  no child
 *      '--'      (end of file on the socket)          every 20 ms
 *    SIGTERM: passed on to the child
 *
 * There are two, so that any two of the three may die at the same moment: the
 * third one inherits their children.
 *
 * A keeper has no time-out: a process that hangs in the kernel keeps its
 * memory, and only the keeper knows when that is free.  It holds the lock of
 * the engine's folder until then.
 *
 * A keeper is this same program under the name `llmgw-keeper`.  Its descriptor
 * 3 is a socket to the adapter, 4 the lock; the engine's command follows "--".
 */

#ifndef KEEPER_H
#define KEEPER_H


#define KEEPER_NAME  "llmgw-keeper"

/* How many keepers are between the adapter and its engine. */
#define KEEPER_DEPTH  2

/*
 * A keeper's messages on the socket: KEEPER_STARTED and a pid; KEEPER_ENDED and
 * how the child ended, by child_describe_end().
 */
#define KEEPER_STARTED      '+'
#define KEEPER_ENDED        '-'
#define KEEPER_WORD_BYTES   256

/* Whether this process was started as a keeper. */
int keeper_is_asked_for(int argc, char **argv);

/* Runs the keeper, and returns its exit status. */
int keeper_main(int argc, char **argv);

/*
 * The arguments that start a keeper.  depth: KEEPER_DEPTH as text; cgroup may
 * be NULL.  The caller frees the array, not its strings.  NULL: out of memory.
 */
char **keeper_words(char *depth, const char *cgroup, char *const *command);

#endif /* KEEPER_H */
