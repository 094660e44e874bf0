
/*
 * The end of a tree of processes, for certain and without any right.
 *
 * The kernel gives a process whose parent dies to the nearest ancestor that is
 * a subreaper.  So a subreaper that kills its children, then those which that
 * brings to it, and so on, has ended all that it ever started as soon as
 * waitpid() says that it has no child: whatever became a daemon, left its
 * session, or forked meanwhile.
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

/* Orphans below this process come to it.  0, or -1 and errno. */
int tree_adopt(void);

/*
 * SIGKILL to each child process of this one but those of that name, as
 * PR_SET_NAME gives it; NULL: to all.
 */
void tree_kill(const char *but);

/* 1: there is no child, not even one that has ended and is waited for. */
int tree_is_gone(void);

/* Which children there are, for people: "12 python3, 13 python3". */
void tree_describe(char text[TREE_TEXT_BYTES]);

#endif /* TREE_H */
