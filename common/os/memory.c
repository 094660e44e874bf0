
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/os/memory.h"


#define MEMORY_LINE_BYTES  512
#define MEMORY_PATH_BYTES  (2 * PATH_MAX)

/* The files that have the figures, in one version of control groups. */
typedef struct {
    const char  *mount;
    const char  *limit;
    const char  *usage;
    const char  *inactive;          /* fields of memory.stat for page cache, */
    const char  *active;            /* with all groups below included */
} memory_version_t;

static const memory_version_t  memory_v2 = {
    "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file",
    "active_file"
};

static const memory_version_t  memory_v1 = {
    "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
    "total_inactive_file", "total_active_file"
};


/* Reads the number after this word, which begins a line.  0, or -1. */
static int
memory_field(const char *dir, const char *name, const char *word,
    uint64_t *value)
{
    int     rc;
    char    path[MEMORY_PATH_BYTES], line[MEMORY_LINE_BYTES];
    FILE   *f;
    size_t  len;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "re");

    if (f == NULL) {
        return -1;
    }

    rc = -1;
    len = strlen(word);

    while (rc != 0 && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, word, len) == 0
            && (len == 0 || line[len] == ' ' || line[len] == ':'))
        {
            rc = sscanf(line + len + (len != 0), "%" SCNu64, value) == 1
                 ? 0 : -1;
        }
    }

    fclose(f);

    return rc;
}


static void
memory_bound(memory_t *memory, uint64_t limit, uint64_t available)
{
    if (limit < memory->limit_bytes) {
        memory->limit_bytes = limit;
    }

    if (available < memory->available_bytes) {
        memory->available_bytes = available;
    }
}


static void
memory_read_host(memory_t *memory, const char *root)
{
    uint64_t  kb;

    if (memory_field(root, "proc/meminfo", "MemTotal", &kb) == 0) {
        memory_bound(memory, kb << 10, UINT64_MAX);
    }

    if (memory_field(root, "proc/meminfo", "MemAvailable", &kb) == 0) {
        memory_bound(memory, UINT64_MAX, kb << 10);
    }
}


/* Reads one group; dir ends without a slash. */
static void
memory_read_group(memory_t *memory, const memory_version_t *version,
    const char *dir)
{
    uint64_t  limit, usage, inactive, active, kept;

    if (memory_field(dir, version->limit, "", &limit) != 0) {
        return;                         /* "max", or this group is not here */
    }

    usage = 0;
    inactive = 0;
    active = 0;
    (void) memory_field(dir, version->usage, "", &usage);
    (void) memory_field(dir, "memory.stat", version->inactive, &inactive);
    (void) memory_field(dir, "memory.stat", version->active, &active);

    kept = usage > inactive + active ? usage - inactive - active : 0;
    memory_bound(memory, limit, limit > kept ? limit - kept : 0);
}


/*
 * Reads the groups from this one up to the root.  A container may see its own
 * group as the root of what is mounted there, and still be told the host's name
 * of it: missing parts of the path are skipped.
 */
static void
memory_read_groups(memory_t *memory, const memory_version_t *version,
    const char *root, char *group)
{
    char    dir[PATH_MAX];
    char   *slash;

    if (strstr(group, "/..") != NULL) {
        group[0] = '\0';                /* outside of this name space */
    }

    for ( ;; ) {
        snprintf(dir, sizeof(dir), "%s%s%s", root, version->mount, group);
        memory_read_group(memory, version, dir);
        slash = strrchr(group, '/');

        if (slash == NULL) {
            return;
        }

        *slash = '\0';
    }
}


/* Lines of "0::PATH" (version 2) and "N:CONTROLLER,...:PATH" (1). */
void
memory_read_process(memory_t *memory, const char *root, const char *process)
{
    char   path[PATH_MAX], line[PATH_MAX];
    char  *names, *group;
    FILE  *f;

    memory->limit_bytes = UINT64_MAX;
    memory->available_bytes = UINT64_MAX;
    memory_read_host(memory, root);

    snprintf(path, sizeof(path), "%s/proc/%s/cgroup", root, process);
    f = fopen(path, "re");

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        names = strchr(line, ':');
        group = names != NULL ? strchr(names + 1, ':') : NULL;

        if (group == NULL) {
            continue;
        }

        *group++ = '\0';

        if (names[1] == '\0') {
            memory_read_groups(memory, &memory_v2, root, group);

        } else if (strcmp(names + 1, "memory") == 0) {
            memory_read_groups(memory, &memory_v1, root, group);
        }
    }

    if (f != NULL) {
        fclose(f);
    }
}


void
memory_read(memory_t *memory, const char *root)
{
    memory_read_process(memory, root, "self");
}
