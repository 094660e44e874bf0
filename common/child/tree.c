
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child/tree.h"
#include "common/os/process.h"


/*
 * Most bytes read of one thread's list at a time: the next walk reads the rest.
 */
#define TREE_LIST_BYTES  8192

typedef void (*tree_child_pt)(void *data, pid_t pid);

typedef void (*tree_visit_pt)(const char *name, tree_child_pt each,
    void *data);


int
tree_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}


/* Reads a small file; -1: it cannot be read. */
static ssize_t
tree_read(const char *path, char *text, size_t bytes)
{
    int      fd;
    ssize_t  n;

    fd = open(path, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    n = read(fd, text, bytes - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';

    return n;
}


/*
 * Walks the children that a thread has started or got, as the kernel lists
 * them.
 */
static void
tree_walk_thread(const char *thread, tree_child_pt each, void *data)
{
    char  *at, *end, path[64], text[TREE_LIST_BYTES];
    pid_t  pid;

    snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", thread);

    if (tree_read(path, text, sizeof(text)) <= 0) {
        return;                         /* the thread has ended */
    }

    /* the last number may be cut: only numbers followed by a blank count */

    for (at = text; ; at = end) {
        pid = (pid_t) strtol(at, &end, 10);

        if (end == at || *end != ' ') {
            return;
        }

        each(data, pid);
    }
}


static void
tree_walk_dir(const char *path, tree_child_pt each, void *data,
    tree_visit_pt visit)
{
    DIR            *dir;
    struct dirent  *entry;

    dir = opendir(path);

    while (dir != NULL && (entry = readdir(dir)) != NULL) {

        if (isdigit((unsigned char) entry->d_name[0])) {
            visit(entry->d_name, each, data);
        }
    }

    if (dir != NULL) {
        closedir(dir);
    }
}


static void
tree_walk_process(const char *name, tree_child_pt each, void *data)
{
    pid_t  pid;

    pid = (pid_t) strtol(name, NULL, 10);

    if (process_parent(pid) == getpid()) {
        each(data, pid);
    }
}


/*
 * Kernels without the lists of children are for small devices; on these, all of
 * /proc is walked.
 */
static void
tree_walk(tree_child_pt each, void *data)
{
    if (access("/proc/thread-self/children", F_OK) == 0) {
        tree_walk_dir("/proc/self/task", each, data, tree_walk_thread);
        return;
    }

    tree_walk_dir("/proc", each, data, tree_walk_process);
}


/* The name of a process.  0; -1: the process is gone. */
static int
tree_name(pid_t pid, char *name, size_t bytes)
{
    char  path[32];

    snprintf(path, sizeof(path), "/proc/%d/comm", (int) pid);

    if (tree_read(path, name, bytes) <= 0) {
        return -1;
    }

    name[strcspn(name, "\n")] = '\0';

    return 0;
}


static void
tree_kill_one(void *data, pid_t pid)
{
    char  name[32];

    if (data == NULL || tree_name(pid, name, sizeof(name)) != 0
        || strcmp(name, data) != 0)
    {
        (void) kill(pid, SIGKILL);
    }
}


void
tree_kill(const char *but)
{
    tree_walk(tree_kill_one, (void *) but);
}


int
tree_is_gone(void)
{
    siginfo_t  info;

    return waitid(P_ALL, 0, &info, WEXITED|WNOHANG|WNOWAIT) == -1
           && errno == ECHILD;
}


static void
tree_describe_one(void *data, pid_t pid)
{
    char   *text, name[32];
    size_t  len;

    text = data;
    len = strlen(text);

    if (tree_name(pid, name, sizeof(name)) != 0) {
        return;
    }

    snprintf(text + len, TREE_TEXT_BYTES - len, "%s%d %s",
             len > 0 ? ", " : "", (int) pid, name);
}


void
tree_describe(char text[TREE_TEXT_BYTES])
{
    text[0] = '\0';
    tree_walk(tree_describe_one, text);
}
