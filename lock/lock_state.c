
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <jansson.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/os/atomic_file.h"
#include "lock/lock_state.h"


/* A full table of the longest names has 17 kB. */
#define KEPT_BYTES      65536
#define KEPT_SUM_BYTES  17


static void
kept_sum(char *sum, const char *text, size_t len)
{
    snprintf(sum, KEPT_SUM_BYTES, "%016" PRIx64,
             (uint64_t) XXH64(text, len, 0));
}


int
kept_own(const char *path)
{
    int   fd;
    char  owner[PATH_MAX];

    snprintf(owner, sizeof(owner), "%s.owner", path);
    fd = open(owner, O_RDONLY|O_CREAT|O_CLOEXEC, 0600);

    if (fd == -1) {
        return -2;
    }

    if (flock(fd, LOCK_EX|LOCK_NB) != 0) {
        close(fd);
        return -1;
    }

    return fd;
}


/* --- reading */

static int
kept_copy(char *to, size_t capacity, const char *from)
{
    return snprintf(to, capacity, "%s", from) < (int) capacity ? 0 : -1;
}


static int
kept_holder(json_t *json, machine_claim_t *claim)
{
    json_int_t   pid, start, epoch;
    const char  *group, *engine, *nonce;

    if (json_unpack(json, "{s:s, s:s, s:s, s:I, s:I, s:I}", "group", &group,
                    "engine", &engine, "nonce", &nonce, "pid", &pid, "start",
                    &start, "epoch", &epoch) != 0)
    {
        return -1;
    }

    claim->pid = (pid_t) pid;
    claim->start_ticks = (uint64_t) start;
    claim->epoch = (uint64_t) epoch;

    return kept_copy(claim->group, sizeof(claim->group), group)
           || kept_copy(claim->engine, sizeof(claim->engine), engine)
           || kept_copy(claim->nonce, sizeof(claim->nonce), nonce) ? -1 : 0;
}


static int
kept_fill(kept_t *kept, json_t *json)
{
    size_t       i;
    json_t      *holders, *holder;
    json_int_t   epoch;
    const char  *boot_id;

    if (json_unpack(json, "{s:I, s:s, s:o}", "epoch", &epoch, "boot_id",
                    &boot_id, "holders", &holders) != 0
        || json_array_size(holders) > MACHINE_GROUPS_MAX
        || kept_copy(kept->boot_id, sizeof(kept->boot_id), boot_id) != 0)
    {
        return -1;
    }

    kept->epoch = (uint64_t) epoch;

    json_array_foreach(holders, i, holder) {
        if (kept_holder(holder, &kept->holders[kept->nholders++]) != 0) {
            return -1;
        }
    }

    return 0;
}


static const char *
kept_parse(kept_t *kept, char *text, size_t len)
{
    int      rc;
    char    *end, sum[KEPT_SUM_BYTES];
    json_t  *json;

    end = memchr(text, '\n', len);

    if (end == NULL) {
        return "it has no whole line";
    }

    kept_sum(sum, text, (size_t) (end - text));

    if ((size_t) (text + len - (end + 1)) != KEPT_SUM_BYTES
        || memcmp(end + 1, sum, KEPT_SUM_BYTES - 1) != 0)
    {
        return "its checksum does not fit";
    }

    json = json_loadb(text, (size_t) (end - text), 0, NULL);
    rc = json != NULL ? kept_fill(kept, json) : -1;
    json_decref(json);

    return rc == 0 ? NULL : "a field is missing or wrong";
}


kept_rc_t
kept_read(const char *path, kept_t *kept, char *error)
{
    char        *text;
    FILE        *file;
    size_t       len;
    const char  *wrong;

    memset(kept, 0, sizeof(kept_t));
    file = fopen(path, "re");

    if (file == NULL) {
        snprintf(error, KEPT_ERROR_BYTES, "%s", strerror(errno));
        return errno == ENOENT ? KEPT_MISSING : KEPT_TORN;
    }

    text = malloc(KEPT_BYTES);
    len = text != NULL ? fread(text, 1, KEPT_BYTES, file) : 0;
    fclose(file);

    wrong = kept_parse(kept, text, len);
    free(text);

    if (wrong != NULL) {
        memset(kept, 0, sizeof(kept_t));
        snprintf(error, KEPT_ERROR_BYTES, "%s", wrong);
        return KEPT_TORN;
    }

    return KEPT_OK;
}


/* --- writing */

void
kept_of_machine(kept_t *kept, const machine_t *m, const char *boot_id)
{
    size_t                  i;
    const machine_group_t  *g;

    memset(kept, 0, sizeof(kept_t));
    kept->epoch = m->epoch;
    snprintf(kept->boot_id, sizeof(kept->boot_id), "%s", boot_id);

    for (i = 0; i < MACHINE_GROUPS_MAX; i++) {
        g = &m->groups[i];

        if (g->holder != NULL) {
            kept->holders[kept->nholders++] = g->holder->claim;
        }
    }
}


static json_t *
kept_json(const kept_t *kept)
{
    size_t                  i;
    json_t                 *holders;
    const machine_claim_t  *h;

    holders = json_array();

    for (i = 0; i < kept->nholders; i++) {
        h = &kept->holders[i];
        json_array_append_new(holders, json_pack(
            "{s:s, s:s, s:s, s:I, s:I, s:I}", "group", h->group, "engine",
            h->engine, "nonce", h->nonce, "pid", (json_int_t) h->pid,
            "start", (json_int_t) h->start_ticks, "epoch",
            (json_int_t) h->epoch));
    }

    return json_pack("{s:I, s:s, s:o}", "epoch", (json_int_t) kept->epoch,
                     "boot_id", kept->boot_id, "holders", holders);
}


int
kept_write(const char *path, const kept_t *kept)
{
    int      rc;
    char    *text, *lines;
    size_t   len;
    json_t  *json;

    json = kept_json(kept);
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    len = text != NULL ? strlen(text) : 0;
    lines = malloc(len + 1 + KEPT_SUM_BYTES);

    if (text == NULL || lines == NULL) {
        free(text);
        free(lines);
        errno = ENOMEM;
        return -1;
    }

    memcpy(lines, text, len);
    lines[len] = '\n';
    kept_sum(lines + len + 1, text, len);
    lines[len + KEPT_SUM_BYTES] = '\n';
    rc = kept_file_write(path, lines, len + 1 + KEPT_SUM_BYTES);

    free(text);
    free(lines);

    return rc;
}
