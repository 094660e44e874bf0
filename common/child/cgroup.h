
/*
 * A control group for one child and all that it starts (cgroups version 2):
 * one write kills each process in it, even one that has left its parent.
 *
 * A group is made only where this process's own group was delegated to it, as
 * by Delegate=yes of a systemd unit: elsewhere another program manages groups.
 * Only the group made here is killed, which contains only the child's
 * processes.
 */

#ifndef CGROUP_H
#define CGROUP_H


#define CGROUP_PATH_BYTES  4096

/*
 * Makes the group `name` within this process's own group, or finds the one of
 * an earlier run.  Sets path; to "" if the own group was not delegated, which
 * is no error.
 */
void cgroup_make(const char *name, char path[CGROUP_PATH_BYTES]);

/*
 * Move this process into the group, and back to the group in which it was made.
 */
int cgroup_enter(const char *path);
int cgroup_leave(const char *path);

/*
 * Sends SIGKILL to all processes in the group; and tells whether it is empty.
 */
void cgroup_kill(const char *path);
int cgroup_is_empty(const char *path);

/* Removes the group if it is empty; otherwise it stays. */
void cgroup_remove(const char *path);

#endif /* CGROUP_H */
