
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "up/fleet/fleet.h"


#define FLEET_REMIND_S  15.0


/* --- engines */

static void
fleet_on_pair_gone(void *data, pair_t *pair)
{
    pair_t   **place;
    fleet_t   *f;

    f = data;

    for (place = &f->pairs; *place != pair; place = &(*place)->next) {
        /* void */
    }

    *place = pair->next;
    f->npairs--;
    f->slots[pair->slot] = 0;
    printf("  %-20s gone\n", pair->id);
    pair_done(pair);
    free(pair);

    if (f->is_ending && f->pairs == NULL) {
        f->on_empty(f->data);
    }
}


static int
fleet_has_id(const fleet_t *f, const char *id)
{
    const pair_t  *p;

    for (p = f->pairs; p != NULL; p = p->next) {
        if (strcmp(p->id, id) == 0) {
            return 1;
        }
    }

    return strcmp(id, FILES_GATEWAY) == 0;
}


/* Sets an id that no other engine has, by appending a number if need be. */
static void
fleet_set_id(const fleet_t *f, pair_t *p)
{
    char            base[SOURCE_ID_BYTES];
    unsigned short  n;

    source_id(p->target, base);
    strcpy(p->id, base);

    for (n = 2; fleet_has_id(f, p->id); n++) {
        snprintf(p->id, sizeof(p->id), "%.*s-%hu", SOURCE_ID_BYTES - 7,
                 base, n);
    }
}


static int
fleet_add_engine(fleet_t *f, const fleet_source_t *origin, const char *target,
    char error[FILES_ERROR_BYTES])
{
    pair_t  *p, **last;

    if (f->npairs == FLEET_ENGINES_MAX) {
        snprintf(error, FILES_ERROR_BYTES, "there are %d engines already",
                 FLEET_ENGINES_MAX);
        return -1;
    }

    p = calloc(1, sizeof(pair_t));

    if (p == NULL) {
        snprintf(error, FILES_ERROR_BYTES, "out of memory");
        return -1;
    }

    while (f->slots[p->slot]) {
        p->slot++;
    }

    p->kind = origin->source.kind;
    p->origin = origin;
    p->on_gone = fleet_on_pair_gone;
    p->data = f;
    snprintf(p->target, sizeof(p->target), "%s", target);
    strcpy(p->said, PAIR_STARTING);     /* so that no line is printed for it */
    fleet_set_id(f, p);

    if (pair_begin(p, f->loop, f->files, f->tools, f->key, error) != 0) {
        pair_done(p);
        free(p);
        return -1;
    }

    for (last = &f->pairs; *last != NULL; last = &(*last)->next) { /* void */ }

    *last = p;
    f->slots[p->slot] = 1;
    f->npairs++;
    printf("  %-20s %s\n", p->id, target);

    return 0;
}


/* --- names */

static pair_t *
fleet_find(const fleet_t *f, const fleet_source_t *origin, const char *target)
{
    pair_t  *p;

    for (p = f->pairs; p != NULL; p = p->next) {
        if (p->origin == origin && p->state == PAIR_LIVE
            && strcmp(p->target, target) == 0)
        {
            return p;
        }
    }

    return NULL;
}


static int
fleet_is_among(const char *target, const char *const *texts, int n)
{
    int  i;

    for (i = 0; i < n; i++) {
        if (strcmp(target + strlen("http://"), texts[i]) == 0) {
            return 1;
        }
    }

    return 0;
}


static void
fleet_on_set(void *data, const char *const *texts, int n, const char *why)
{
    int              i;
    char             url[URL_BYTES], error[FILES_ERROR_BYTES];
    pair_t          *p;
    fleet_t         *f;
    fleet_source_t  *s;

    s = data;
    f = s->fleet;

    if (why != NULL && strcmp(s->why, why) != 0) {
        printf("  %-20s %s%s\n", s->source.text, n < 0
               ? "its addresses stay as they were: " : "", why);
    }

    snprintf(s->why, sizeof(s->why), "%s", why != NULL ? why : "");

    if (n < 0) {
        return;
    }

    for (p = f->pairs; p != NULL; p = p->next) {
        if (p->origin == s && p->state == PAIR_LIVE
            && !fleet_is_among(p->target, texts, n))
        {
            pair_retire(p, 0);
        }
    }

    for (i = 0; i < n; i++) {
        snprintf(url, sizeof(url), "http://%s", texts[i]);

        if (fleet_find(f, s, url) == NULL
            && fleet_add_engine(f, s, url, error) != 0)
        {
            printf("  %-20s not added: %s\n", url, error);
        }
    }
}


/* --- sources */

static fleet_source_t *
fleet_find_source(const fleet_t *f, const char *text)
{
    fleet_source_t  *s;

    for (s = f->sources; s != NULL && strcmp(s->source.text, text) != 0;
         s = s->next) { /* void */ }

    return s;
}


static void
fleet_unlink(fleet_t *f, fleet_source_t *source)
{
    pair_t           *p;
    fleet_source_t  **place;

    for (place = &f->sources; *place != source; place = &(*place)->next) {
        /* void */
    }

    *place = source->next;

    for (p = f->pairs; p != NULL; p = p->next) {
        p->origin = p->origin == source ? NULL : p->origin;
    }

    if (source->source.kind == SOURCE_DNS) {
        dns_done(&source->dns);
    }

    free(source);
}


static int
fleet_begin_source(fleet_t *f, fleet_source_t *s,
    char error[FILES_ERROR_BYTES])
{
    if (s->source.kind != SOURCE_DNS) {
        return fleet_add_engine(f, s, s->source.target, error);
    }

    snprintf(s->name, sizeof(s->name), "%s:%u", s->source.host,
             s->source.port);
    dns_init(&s->dns, f->loop, f->tools->own, s->name, f->dns_period_s,
             fleet_on_set, s);

    return 0;
}


int
fleet_add(fleet_t *fleet, const source_t *source,
    char error[FILES_ERROR_BYTES])
{
    fleet_source_t  *s, **last;

    if (fleet_find_source(fleet, source->text) != NULL) {
        snprintf(error, FILES_ERROR_BYTES, "\"%.900s\" is there already",
                 source->text);
        return -1;
    }

    s = calloc(1, sizeof(fleet_source_t));

    if (s == NULL) {
        snprintf(error, FILES_ERROR_BYTES, "out of memory");
        return -1;
    }

    s->source = *source;
    s->fleet = fleet;

    for (last = &fleet->sources; *last != NULL; last = &(*last)->next) {
        /* void */
    }

    *last = s;

    if (fleet_begin_source(fleet, s, error) != 0) {
        fleet_unlink(fleet, s);
        return -1;
    }

    return 0;
}


/* The source whose only engine has this id. */
static const fleet_source_t *
fleet_source_of_id(const fleet_t *f, const char *id)
{
    const pair_t          *p;
    const fleet_source_t  *s;

    for (p = f->pairs; p != NULL; p = p->next) {
        s = p->origin;

        if (s != NULL && s->source.kind != SOURCE_DNS
            && strcmp(p->id, id) == 0)
        {
            return s;
        }
    }

    return NULL;
}


int
fleet_remove(fleet_t *fleet, const char *text)
{
    pair_t                *p;
    const fleet_source_t  *s;

    s = fleet_find_source(fleet, text);
    s = s != NULL ? s : fleet_source_of_id(fleet, text);

    if (s == NULL) {
        return -1;
    }

    for (p = fleet->pairs; p != NULL; p = p->next) {
        if (p->origin == s && p->state == PAIR_LIVE) {
            pair_retire(p, 0);
        }
    }

    fleet_unlink(fleet, (fleet_source_t *) s);

    return 0;
}


/* --- all of them */

void
fleet_end(fleet_t *fleet, int is_hurried)
{
    pair_t          *p;
    fleet_source_t  *s;

    fleet->is_ending = 1;

    for (s = fleet->sources; s != NULL; s = s->next) {
        if (s->source.kind == SOURCE_DNS) {
            dns_done(&s->dns);
        }
    }

    for (p = fleet->pairs; p != NULL; p = p->next) {
        if (p->state == PAIR_LIVE || is_hurried) {
            pair_retire(p, is_hurried);
        }
    }

    if (fleet->pairs == NULL) {
        fleet->on_empty(fleet->data);
    }
}


void
fleet_see(fleet_t *fleet, const json_t *members)
{
    pair_t  *p;

    for (p = fleet->pairs; p != NULL; p = p->next) {
        pair_see(p, members);
    }
}


static void
fleet_say_pair(pair_t *p, double now)
{
    int   is_new;
    char  text[PAIR_TEXT_BYTES];

    pair_text(p, text, sizeof(text));
    is_new = strcmp(text, p->said) != 0;

    /* One line for the ends of all its streams. */
    is_new &= p->state == PAIR_LIVE || p->said_state == PAIR_LIVE;

    if (!is_new && (pair_is_ready(p) || now - p->said_at < FLEET_REMIND_S)) {
        return;
    }

    if (is_new) {
        printf("  %-20s %s\n", p->id, text);
    } else {
        printf("  %-20s %s (%d s)\n", p->id, text,
               (int) (now - p->began_at + 0.5));
    }

    strcpy(p->said, text);
    p->said_state = p->state;
    p->said_at = now;
}


void
fleet_say(fleet_t *fleet)
{
    pair_t  *p;

    for (p = fleet->pairs; p != NULL; p = p->next) {
        fleet_say_pair(p, ev_now(fleet->loop));
    }
}


int
fleet_count_ready(const fleet_t *fleet)
{
    int            n;
    const pair_t  *p;

    n = 0;

    for (p = fleet->pairs; p != NULL; p = p->next) {
        n += pair_is_ready(p);
    }

    return n;
}


void
fleet_trim_logs(const fleet_t *fleet)
{
    const pair_t  *p;

    for (p = fleet->pairs; p != NULL; p = p->next) {
        program_trim_log(&p->adapter);
        program_trim_log(&p->agent);
    }
}


void
fleet_done(fleet_t *fleet)
{
    pair_t  *p;

    while (fleet->sources != NULL) {
        fleet_unlink(fleet, fleet->sources);
    }

    while ((p = fleet->pairs) != NULL) {
        fleet->pairs = p->next;
        pair_done(p);
        free(p);
    }
}
