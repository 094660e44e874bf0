
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/publish.h"


/*
 * A publication sorts, checks and writes the whole table, some ms of work at
 * 10,000 members: so there is at most one in this time, and publishing never
 * takes more than a quarter of the agent's time, however many changes there
 * are.  The heartbeat publishes in any case.
 */
#define PUBLISH_INTERVAL_US  20000
#define PUBLISH_SHARE        4

/*
 * The number of lists remembered while they are held; a fleet has one or two.
 */
#define PUBLISH_HELD  64

struct publish_s {
    llmgw_members_writer_t  *writer;
    publish_change_pt        on_change;
    void                    *data;
    uint64_t                 last_us;       /* when the last publication
                                               began */
    uint64_t                 interval_us;   /* from then to the next one */
    int                      has_published;
    int                      is_marked;
    int                      is_isolated;
};


publish_t *
publish_create(const char *path, uint32_t capacity,
    publish_change_pt on_change, void *data, char *error)
{
    publish_t           *publish;
    llmgw_members_rc_t   rc;

    publish = calloc(1, sizeof(publish_t));
    if (publish == NULL) {
        snprintf(error, LLMGW_MEMBERS_ERROR_BYTES, "out of memory");
        return NULL;
    }

    publish->on_change = on_change;
    publish->data = data;

    rc = llmgw_members_writer_create(&publish->writer, path, capacity, error);

    if (rc != LLMGW_MEMBERS_DONE) {
        free(publish);
        return NULL;
    }

    return publish;
}


void
publish_destroy(publish_t *publish)
{
    llmgw_members_writer_destroy(publish->writer);
    free(publish);
}


void
publish_mark(publish_t *publish)
{
    publish->is_marked = 1;
}


void
publish_set_isolated(publish_t *publish, int is_isolated)
{
    publish->is_marked |= publish->is_isolated != is_isolated;
    publish->is_isolated = is_isolated;
}


uint64_t
publish_wait_us(const publish_t *publish, uint64_t now_us)
{
    uint64_t  due_us;

    due_us = publish->last_us + publish->interval_us;

    return publish->is_marked && publish->has_published && now_us < due_us
           ? due_us - now_us : 0;
}


/* A member that is not published yet will be published with this load. */
void
publish_load(publish_t *publish, const char *id,
    const llmgw_member_load_t *load)
{
    llmgw_members_set_load(publish->writer, id, load);
}


/*
 * Both tables are sorted: one walk finds what was added, removed and changed.
 */
static void
publish_tell_changes(const publish_t *publish)
{
    int                    order;
    size_t                 i, j, nbefore, nafter;
    const llmgw_member_t  *before, *after;

    after = llmgw_members_published(publish->writer, NULL, &nafter);
    before = llmgw_members_published_before(publish->writer, &nbefore);

    /* differences from what an earlier run left are not reported */
    nbefore = publish->has_published ? nbefore : 0;

    for (i = 0, j = 0; i < nbefore || j < nafter; /* void */) {
        order = i == nbefore ? 1
                : j == nafter ? -1
                : strcmp(before[i].id, after[j].id);

        if (order < 0) {
            publish->on_change(publish->data, &before[i++], NULL);

        } else if (order > 0) {
            publish->on_change(publish->data, NULL, &after[j++]);

        } else {
            if (memcmp(&before[i], &after[j], sizeof(llmgw_member_t)) != 0) {
                publish->on_change(publish->data, &before[i], &after[j]);
            }

            i++;
            j++;
        }
    }
}


/*
 * Holds a list of models for the next publication.  Many members have the same
 * list: `held` remembers some that are held.  If a list cannot be held, the
 * writer leaves it out.
 */
static void
publish_hold(publish_t *publish, uint64_t *held, const publish_item_t *item)
{
    uint64_t   list;
    uint64_t  *slot;

    slot = &held[item->member->models % PUBLISH_HELD];

    if (item->member->models != *slot
        && llmgw_members_hold_list(publish->writer, item->models,
                                   item->models_bytes, &list)
           == LLMGW_MEMBERS_DONE)
    {
        *slot = list;
    }
}


/* The members as the writer takes them. */
static llmgw_members_rc_t
publish_source(publish_t *publish, const publish_source_t *source)
{
    size_t                       i;
    uint64_t                     held[PUBLISH_HELD] = { 0 };
    publish_item_t               item;
    llmgw_members_rc_t           rc;
    const llmgw_member_t       **members;
    const llmgw_member_load_t  **loads;

    members = malloc((source->n + 1) * 2 * sizeof(void *));
    if (members == NULL) {
        return LLMGW_MEMBERS_ESYSTEM;
    }

    loads = (const llmgw_member_load_t **) &members[source->n];

    for (i = 0; i < source->n; i++) {
        source->at(source->data, i, &item);
        members[i] = item.member;
        loads[i] = item.load;

        if (item.member->models != 0) {
            publish_hold(publish, held, &item);
        }
    }

    rc = llmgw_members_publish(publish->writer, members, loads, source->n,
                               publish->is_isolated);
    free(members);

    return rc;
}


int
publish_flush(publish_t *publish, const publish_source_t *source,
    uint64_t now_us, char *error)
{
    llmgw_members_rc_t  rc;

    if (!publish->is_marked) {
        return 0;
    }

    rc = publish_source(publish, source);

    if (rc != LLMGW_MEMBERS_DONE) {
        snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
                 rc == LLMGW_MEMBERS_EFULL ? "it is full"
                                           : "it could not be written");
        return -1;
    }

    publish->is_marked = 0;
    publish->last_us = now_us;
    publish->interval_us = PUBLISH_INTERVAL_US;
    publish_tell_changes(publish);
    publish->has_published = 1;

    return 0;
}


void
publish_took(publish_t *publish, uint64_t took_us)
{
    if (took_us * PUBLISH_SHARE > publish->interval_us) {
        publish->interval_us = took_us * PUBLISH_SHARE;
    }
}


int
publish_heartbeat(publish_t *publish, uint64_t now_ms, char *error)
{
    return llmgw_members_heartbeat(publish->writer, now_ms, error)
           == LLMGW_MEMBERS_DONE ? 0 : -1;
}


const char *
publish_models(const publish_t *publish, uint64_t models, size_t *bytes)
{
    return llmgw_members_held_list(publish->writer, models, bytes);
}


llmgw_roster_t
publish_roster(const publish_t *publish)
{
    llmgw_roster_t  roster;

    roster.members = llmgw_members_published(publish->writer, &roster.loads,
                                             &roster.n);

    return roster;
}
