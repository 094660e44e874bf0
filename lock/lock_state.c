
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
#define LOCK_STATE_BYTES      65536
#define LOCK_STATE_SUM_BYTES  17


static void
lock_state_sum(char *sum, const char *text, size_t len)
{
    snprintf(sum, LOCK_STATE_SUM_BYTES, "%016" PRIx64,
             (uint64_t) XXH64(text, len, 0));
}


int
lock_state_own(const char *path)
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
lock_state_copy(char *to, size_t capacity, const char *from)
{
    return snprintf(to, capacity, "%s", from) < (int) capacity ? 0 : -1;
}


static int
lock_state_holder(json_t *json, machine_claim_t *claim)
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

    return lock_state_copy(claim->group, sizeof(claim->group), group)
           || lock_state_copy(claim->engine, sizeof(claim->engine), engine)
           || lock_state_copy(claim->nonce, sizeof(claim->nonce),
                              nonce) ? -1 : 0;
}


static int
lock_state_fill(lock_state_t *state, json_t *json)
{
    size_t       i;
    json_t      *holders, *holder;
    json_int_t   epoch;
    const char  *boot_id;

    if (json_unpack(json, "{s:I, s:s, s:o}", "epoch", &epoch, "boot_id",
                    &boot_id, "holders", &holders) != 0
        || json_array_size(holders) > MACHINE_GROUPS_MAX
        || lock_state_copy(state->boot_id, sizeof(state->boot_id),
                           boot_id) != 0)
    {
        return -1;
    }

    state->epoch = (uint64_t) epoch;

    json_array_foreach(holders, i, holder) {
        if (lock_state_holder(holder,
                              &state->holders[state->nholders++]) != 0) {
            return -1;
        }
    }

    return 0;
}


static const char *
lock_state_parse(lock_state_t *state, char *text, size_t len)
{
    int      rc;
    char    *end, sum[LOCK_STATE_SUM_BYTES];
    json_t  *json;

    end = memchr(text, '\n', len);

    if (end == NULL) {
        return "it has no whole line";
    }

    lock_state_sum(sum, text, (size_t) (end - text));

    if ((size_t) (text + len - (end + 1)) != LOCK_STATE_SUM_BYTES
        || memcmp(end + 1, sum, LOCK_STATE_SUM_BYTES - 1) != 0)
    {
        return "its checksum does not fit";
    }

    json = json_loadb(text, (size_t) (end - text), 0, NULL);
    rc = json != NULL ? lock_state_fill(state, json) : -1;
    json_decref(json);

    return rc == 0 ? NULL : "a field is missing or wrong";
}


lock_state_rc_t
lock_state_read(const char *path, lock_state_t *state, char *error)
{
    char        *text;
    FILE        *file;
    size_t       len;
    const char  *wrong;

    memset(state, 0, sizeof(lock_state_t));
    file = fopen(path, "re");

    if (file == NULL) {
        snprintf(error, LOCK_STATE_ERROR_BYTES, "%s", strerror(errno));
        return errno == ENOENT ? LOCK_STATE_MISSING : LOCK_STATE_TORN;
    }

    text = malloc(LOCK_STATE_BYTES);
    len = text != NULL ? fread(text, 1, LOCK_STATE_BYTES, file) : 0;
    fclose(file);

    wrong = lock_state_parse(state, text, len);
    free(text);

    if (wrong != NULL) {
        memset(state, 0, sizeof(lock_state_t));
        snprintf(error, LOCK_STATE_ERROR_BYTES, "%s", wrong);
        return LOCK_STATE_TORN;
    }

    return LOCK_STATE_OK;
}


/* --- writing */

void
lock_state_of_machine(lock_state_t *state, const machine_t *m,
    const char *boot_id)
{
    size_t                  i;
    const machine_group_t  *g;

    memset(state, 0, sizeof(lock_state_t));
    state->epoch = m->epoch;
    snprintf(state->boot_id, sizeof(state->boot_id), "%s", boot_id);

    for (i = 0; i < MACHINE_GROUPS_MAX; i++) {
        g = &m->groups[i];

        if (g->holder != NULL) {
            state->holders[state->nholders++] = g->holder->claim;
        }
    }
}


static json_t *
lock_state_json(const lock_state_t *state)
{
    size_t                  i;
    json_t                 *holders;
    const machine_claim_t  *h;

    holders = json_array();

    for (i = 0; i < state->nholders; i++) {
        h = &state->holders[i];
        json_array_append_new(holders, json_pack(
            "{s:s, s:s, s:s, s:I, s:I, s:I}", "group", h->group, "engine",
            h->engine, "nonce", h->nonce, "pid", (json_int_t) h->pid,
            "start", (json_int_t) h->start_ticks, "epoch",
            (json_int_t) h->epoch));
    }

    return json_pack("{s:I, s:s, s:o}", "epoch", (json_int_t) state->epoch,
                     "boot_id", state->boot_id, "holders", holders);
}


int
lock_state_write(const char *path, const lock_state_t *state)
{
    int      rc;
    char    *text, *lines;
    size_t   len;
    json_t  *json;

    json = lock_state_json(state);
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    len = text != NULL ? strlen(text) : 0;
    lines = malloc(len + 1 + LOCK_STATE_SUM_BYTES);

    if (text == NULL || lines == NULL) {
        free(text);
        free(lines);
        errno = ENOMEM;
        return -1;
    }

    memcpy(lines, text, len);
    lines[len] = '\n';
    lock_state_sum(lines + len + 1, text, len);
    lines[len + LOCK_STATE_SUM_BYTES] = '\n';
    rc = atomic_file_write(path, lines, len + 1 + LOCK_STATE_SUM_BYTES);

    free(text);
    free(lines);

    return rc;
}
