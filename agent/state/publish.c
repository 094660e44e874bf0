
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/publish.h"


typedef struct {
    llmgw_member_t       *members;
    llmgw_member_load_t  *loads;
    size_t                n;
} publish_view_t;

typedef struct {
    const llmgw_member_t       *member;
    const llmgw_member_load_t  *load;
} publish_item_t;

struct publish_s {
    llmgw_members_writer_t  *writer;        /* NULL: a view alone */
    publish_change_pt        on_change;
    void                    *data;
    publish_view_t           view;
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

    if (path == NULL) {
        return publish;
    }

    rc = llmgw_members_writer_create(&publish->writer, path, capacity, error);

    if (rc != LLMGW_MEMBERS_DONE) {
        free(publish);
        return NULL;
    }

    return publish;
}


static void
publish_view_done(publish_view_t *view)
{
    free(view->members);
    free(view->loads);
}


void
publish_destroy(publish_t *publish)
{
    if (publish->writer != NULL) {
        llmgw_members_writer_destroy(publish->writer);
    }

    publish_view_done(&publish->view);
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


static int
publish_compare_id(const void *id, const void *member)
{
    return strcmp(id, ((const llmgw_member_t *) member)->id);
}


void
publish_load(publish_t *publish, const char *id,
    const llmgw_member_load_t *load)
{
    size_t           i;
    llmgw_member_t  *found;

    if (publish->view.n == 0) {
        return;
    }

    found = bsearch(id, publish->view.members, publish->view.n,
                    sizeof(llmgw_member_t), publish_compare_id);

    if (found == NULL) {
        return;         /* not published yet: it will be with its load */
    }

    i = found - publish->view.members;
    publish->view.loads[i] = *load;

    if (publish->writer != NULL) {
        llmgw_members_set_load(publish->writer, i, load);
    }
}


static int
publish_compare_items(const void *a, const void *b)
{
    const publish_item_t  *first = a, *second = b;

    return strcmp(first->member->id, second->member->id);
}


static int
publish_view_build(publish_view_t *view, const publish_source_t *source)
{
    size_t           i;
    publish_item_t  *sorted;

    view->n = source->n;
    view->members = malloc(view->n * sizeof(llmgw_member_t));
    view->loads = malloc(view->n * sizeof(llmgw_member_load_t));
    sorted = malloc(view->n * sizeof(publish_item_t));

    if (view->members == NULL || view->loads == NULL || sorted == NULL) {
        publish_view_done(view);
        free(sorted);
        return -1;
    }

    for (i = 0; i < view->n; i++) {
        source->at(source->data, i, &sorted[i].member, &sorted[i].load);
    }

    qsort(sorted, view->n, sizeof(publish_item_t), publish_compare_items);

    for (i = 0; i < view->n; i++) {
        view->members[i] = *sorted[i].member;
        view->loads[i] = *sorted[i].load;
    }

    free(sorted);

    return 0;
}


/* Both are sorted: one walk tells who came, went and changed. */
static void
publish_tell_changes(const publish_t *publish, const publish_view_t *before)
{
    int                    order;
    size_t                 i, j;
    const publish_view_t  *after;

    after = &publish->view;

    for (i = 0, j = 0; i < before->n || j < after->n; /* void */) {
        order = i == before->n ? 1
                : j == after->n ? -1
                : strcmp(before->members[i].id, after->members[j].id);

        if (order < 0) {
            publish->on_change(publish->data, &before->members[i++], NULL);

        } else if (order > 0) {
            publish->on_change(publish->data, NULL, &after->members[j++]);

        } else {
            if (memcmp(&before->members[i], &after->members[j],
                       sizeof(llmgw_member_t)) != 0)
            {
                publish->on_change(publish->data, &before->members[i],
                                   &after->members[j]);
            }

            i++;
            j++;
        }
    }
}


int
publish_flush(publish_t *publish, const publish_source_t *source,
    char *error)
{
    publish_view_t      view, before;
    llmgw_members_rc_t  rc;

    if (!publish->is_marked) {
        return 0;
    }

    if (publish_view_build(&view, source) != 0) {
        snprintf(error, LLMGW_MEMBERS_ERROR_BYTES, "out of memory");
        return -1;
    }

    rc = LLMGW_MEMBERS_DONE;

    if (publish->writer != NULL) {
        rc = llmgw_members_publish(publish->writer, view.members, view.loads,
                                   view.n, publish->is_isolated);
    }

    if (rc != LLMGW_MEMBERS_DONE) {
        publish_view_done(&view);
        snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
                 rc == LLMGW_MEMBERS_EFULL ? "it is full"
                                           : "it could not be written");
        return -1;
    }

    before = publish->view;
    publish->view = view;
    publish->is_marked = 0;
    publish_tell_changes(publish, &before);
    publish_view_done(&before);

    return 0;
}


int
publish_heartbeat(publish_t *publish, uint64_t now_ms, char *error)
{
    if (publish->writer == NULL) {
        return 0;
    }

    return llmgw_members_heartbeat(publish->writer, now_ms, error)
           == LLMGW_MEMBERS_DONE ? 0 : -1;
}


const llmgw_member_t *
publish_members(const publish_t *publish, size_t *n)
{
    *n = publish->view.n;

    return publish->view.members;
}


const llmgw_member_load_t *
publish_loads(const publish_t *publish)
{
    return publish->view.loads;
}
