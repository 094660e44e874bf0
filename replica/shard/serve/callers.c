
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "replica/shard/serve/callers.h"


static void
caller_add(caller_t *to, const caller_t *from)
{
    size_t  i;

    to->opened += from->opened;
    to->rows += from->rows;

    for (i = 0; i < SHARD_REASONS_COUNT; i++) {
        to->refused[i] += from->refused[i];
    }
}


/* An entry for another name: a new one, or that of the caller without sessions
   that was used least recently.  NULL: all have sessions. */
static caller_t *
callers_make_room(callers_t *callers)
{
    size_t     i;
    caller_t  *found;

    if (callers->n < CALLERS_MAX) {
        return &callers->all[callers->n++];
    }

    found = NULL;

    for (i = 0; i < CALLERS_MAX; i++) {
        if (callers->all[i].sessions == 0
            && (found == NULL || callers->all[i].used < found->used))
        {
            found = &callers->all[i];
        }
    }

    if (found != NULL) {
        caller_add(&callers->others, found);
    }

    return found;
}


caller_t *
callers_find(callers_t *callers, const char *id)
{
    size_t     i;
    caller_t  *caller;

    for (i = 0; i < callers->n; i++) {
        if (strcmp(callers->all[i].id, id) == 0) {
            callers->all[i].used = ++callers->uses;
            return &callers->all[i];
        }
    }

    caller = callers_make_room(callers);

    if (caller == NULL) {
        return &callers->others;
    }

    *caller = (caller_t) { .used = ++callers->uses };
    snprintf(caller->id, sizeof(caller->id), "%s", id);

    return caller;
}


void
caller_opened(caller_t *caller)
{
    caller->sessions++;
    caller->opened++;
}


void
caller_closed(caller_t *caller)
{
    assert(caller->sessions > 0);
    caller->sessions--;
}


static int
caller_report(json_t *report, const char *id, const caller_t *caller)
{
    size_t   i;
    json_t  *refused;

    refused = json_object();

    for (i = 0; i < SHARD_REASONS_COUNT; i++) {
        if (caller->refused[i] > 0) {
            json_object_set_new(refused, shard_reason_name(i),
                                json_integer((json_int_t) caller->refused[i]));
        }
    }

    if (caller->opened == 0 && json_object_size(refused) == 0) {
        json_decref(refused);
        return 0;
    }

    return json_object_set_new(report, id,
               json_pack("{s:i, s:I, s:I, s:o}",
                         "sessions", (int) caller->sessions,
                         "opened", (json_int_t) caller->opened,
                         "rows", (json_int_t) caller->rows,
                         "refused", refused));
}


json_t *
callers_report(const callers_t *callers)
{
    int      rc;
    size_t   i;
    json_t  *report;

    report = json_object();
    rc = caller_report(report, CALLERS_OTHERS, &callers->others);

    for (i = 0; rc == 0 && i < callers->n; i++) {
        rc = caller_report(report, callers->all[i].id, &callers->all[i]);
    }

    if (rc != 0) {
        json_decref(report);
        return NULL;
    }

    return report;
}
