
/*
 * What this run leaves to the next, kept on disk (state/state_file.h).
 *
 *              agent_keep()                 the disk has it
 *     KEPT ------------------> WRITING ------------------> KEPT
 *                               ^    |  it could not
 *                     1 s later |    v
 *                               FAILED
 *
 * The loop never waits for the disk: a thread writes (common/os/background.h),
 * one text of each file at a time, followed by the latest text for that file.
 * An answer that promises what is being written waits: an order that drains or
 * restarts the replica is acknowledged when its text is on the disk.  A disk
 * that refuses blocks nothing: it is logged once, shown by `llmgwctl status`,
 * tried again each second, and answers go out meanwhile.
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_inner.h"


/*
 * How long the end of the agent waits for texts that are still to be written.
 */
#define AGENT_KEEP_END_S  2.0

typedef struct {
    background_job_t   job;             /* first: a job begins with its
                                           header */
    agent_t       *agent;
    agent_file_t   file;
    int            error;           /* errno; 0: the text is on the disk */
    char           dir[PATH_MAX];
    char           id[LLMGW_MEMBERS_NAME_BYTES];
    char           text[STATE_FILE_BYTES];
} agent_keep_job_t;

static const char *const  agent_keep_names[AGENT_NFILES] = {
    [AGENT_EPOCH] = EPOCH_FILE,
    [AGENT_DRAIN] = SETTINGS_DRAIN_FILE,
    [AGENT_VERSION] = SETTINGS_VERSION_FILE
};

static void agent_keep_start(agent_t *agent, agent_file_t file);


/* Writes a file, in the thread. */
static void
agent_keep_write(background_job_t *job)
{
    agent_keep_job_t  *keep = (agent_keep_job_t *) job;

    keep->error = state_file_write(keep->dir, keep->id,
                                   agent_keep_names[keep->file], keep->text)
                  == 0 ? 0 : errno;
}


static void
agent_keep_failed(agent_t *agent, agent_file_t file, int error)
{
    agent_kept_t  *kept;

    kept = &agent->kept[file];

    if (kept->error == 0) {
        log_write(agent->log, LOG_WARN, "\"%s/%s.%s\" cannot be written: %s, "
                  "retrying", agent->settings->state_dir,
                  agent->settings->id, agent_keep_names[file],
                  strerror(error));
    }

    kept->error = error;
}


static void
agent_keep_succeeded(agent_t *agent, agent_file_t file)
{
    agent_kept_t  *kept;

    kept = &agent->kept[file];

    if (kept->error != 0) {
        log_write(agent->log, LOG_INFO, "\"%s/%s.%s\" can be written again",
                  agent->settings->state_dir, agent->settings->id,
                  agent_keep_names[file]);
    }

    kept->error = 0;
}


static void
agent_keep_done(background_job_t *job)
{
    agent_t           *agent;
    agent_kept_t      *kept;
    agent_keep_job_t  *keep = (agent_keep_job_t *) job;

    agent = keep->agent;
    kept = &agent->kept[keep->file];
    kept->is_writing = 0;

    if (keep->error != 0) {
        agent_keep_failed(agent, keep->file, keep->error);

    } else {
        agent_keep_succeeded(agent, keep->file);
    }

    if (kept->is_due) {
        agent_keep_start(agent, keep->file);
    }

    free(keep);

    if (agent_keep_is_done(agent)) {
        node_kept(agent->node);
    }
}


static void
agent_keep_start(agent_t *agent, agent_file_t file)
{
    agent_kept_t      *kept;
    agent_keep_job_t  *keep;

    kept = &agent->kept[file];
    kept->is_due = 0;

    keep = calloc(1, sizeof(agent_keep_job_t));
    if (keep == NULL) {
        agent_keep_failed(agent, file, ENOMEM);
        return;
    }

    keep->job.run = agent_keep_write;
    keep->job.done = agent_keep_done;
    keep->agent = agent;
    keep->file = file;
    snprintf(keep->dir, PATH_MAX, "%s", agent->settings->state_dir);
    strcpy(keep->id, agent->settings->id);
    strcpy(keep->text, kept->text);

    kept->is_writing = 1;
    background_put(agent->writer, &keep->job);
}


void
agent_keep(agent_t *agent, agent_file_t file, const char *text)
{
    agent_kept_t  *kept;

    if (agent->settings->state_dir == NULL) {
        return;
    }

    kept = &agent->kept[file];
    snprintf(kept->text, sizeof(kept->text), "%s", text);

    if (kept->is_writing) {
        kept->is_due = 1;

    } else {
        agent_keep_start(agent, file);
    }
}


int
agent_keep_is_done(void *data)
{
    size_t    i;
    agent_t  *agent = data;

    for (i = 0; i < AGENT_NFILES; i++) {
        if (agent->kept[i].is_writing && agent->kept[i].error == 0) {
            return 0;
        }
    }

    return 1;
}


void
agent_keep_lacking(agent_t *agent, agent_file_t file, const char *text,
    int error)
{
    snprintf(agent->kept[file].text, STATE_FILE_BYTES, "%s", text);
    agent_keep_failed(agent, file, error);
}


void
agent_keep_retry(agent_t *agent)
{
    size_t         i;
    agent_kept_t  *kept;

    for (i = 0; i < AGENT_NFILES; i++) {
        kept = &agent->kept[i];

        if (kept->error != 0 && !kept->is_writing) {
            agent_keep_start(agent, i);
        }
    }
}


const char *
agent_keep_trouble(const agent_t *agent)
{
    size_t  i;

    for (i = 0; i < AGENT_NFILES; i++) {
        if (agent->kept[i].error != 0) {
            return strerror(agent->kept[i].error);
        }
    }

    return NULL;
}


int
agent_keep_create(agent_t *agent, char *error)
{
    agent->writer = background_create(agent->loop);

    if (agent->writer == NULL) {
        snprintf(error, AGENT_ERROR_BYTES, "no thread to write with");
        return -1;
    }

    return 0;
}


void
agent_keep_destroy(agent_t *agent)
{
    if (agent->writer != NULL) {
        background_destroy(agent->writer, AGENT_KEEP_END_S);
    }
}
