
/*
 * The end of a tree of processes, for certain and without any right.
 *
 * The kernel gives a process whose parent dies to the nearest ancestor that is
 * a subreaper.  So a subreaper that kills its children, then the processes that
 * become its children by this, and so on, has ended every process that it ever
 * started as soon as waitpid() reports no child: also daemons, processes of
 * other sessions, and later forks.
 *
 * Only children are killed, and not grandchildren: the number of a child means
 * no other process until its parent has waited for it.
 *
 * The caller waits for its children itself, or libev does for it.
 */

#ifndef TREE_H
#define TREE_H

#include <stddef.h>


#define TREE_TEXT_BYTES  256

/*
 * Makes this process a subreaper, which gets the orphans below it.  0, or -1
 * and errno.
 */
int tree_adopt(void);

/*
 * Sends SIGKILL to each child of this process except those with that name, as
 * set by PR_SET_NAME; NULL: to all.
 */
void tree_kill(const char *but);

/*
 * 1: there is no child left, not even one that has ended and was not waited
 * for.
 */
int tree_is_gone(void);

/* Writes a list of the children, for people: "12 python3, 13 python3". */
void tree_describe(char text[TREE_TEXT_BYTES]);

#endif /* TREE_H */
