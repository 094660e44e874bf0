
/*
 * The segment's shards.
 *
 * A whole view is read when the generation has changed; in between, only the
 * load records are read.  If the segment cannot be used, the shards stay as
 * they were: if the agent died, if the file was removed or damaged, or if a
 * list belongs to the next view already.
 *
 * Shards are not forgotten here, since fleet.c has to close connections first.
 */

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/shard/fleet/fleet_inner.h"


/* An agent writes its heartbeat every second. */
#define VIEW_STALE_MS  3000


static const char *const  view_states[] = {
    "is fresh again", "is absent, its last view stands",
    "is refused, its last view stands", "is stale, its last view stands"
};


/* --- lists */

static void
list_judge(const fleet_t *f, fleet_list_t *list)
{
    list->is_same_model = strcmp(list->model.name, f->want.model) == 0;
    list->is_match = list->is_same_model
                     && strcmp(list->model.numerics, f->want.numerics) == 0
                     && memcmp(list->model.weights_id, f->want.weights_id,
                               SHARD_WEIGHTS_BYTES) == 0;
}


/* The index of a list, or -1: it is not a shard's, or is not in the segment. */
static ssize_t
list_find(fleet_t *f, uint64_t hash)
{
    char           names[LLMGW_MEMBERS_LIST_BYTES];
    size_t         i, bytes;
    fleet_list_t  *list;

    for (i = 0; i < f->nlists; i++) {
        if (f->lists[i].hash == hash) {
            return (ssize_t) i;
        }
    }

    if (f->nlists == LLMGW_MEMBERS_LISTS) {
        return -1;
    }

    if (llmgw_members_read_list(f->reader, hash, names, &bytes)
        != LLMGW_MEMBERS_DONE)
    {
        f->is_read_again = 1;
        return -1;
    }

    list = &f->lists[f->nlists];

    if (llmgw_shard_model_read(&list->model, names, bytes) != 0) {
        return -1;
    }

    list->hash = hash;
    list_judge(f, list);

    return (ssize_t) f->nlists++;
}


/* --- shards */

static int
by_id(const void *a, const void *b)
{
    return strcmp((*(fleet_shard_t *const *) a)->id,
                  (*(fleet_shard_t *const *) b)->id);
}


static int
by_key(const void *a, const void *b)
{
    uint64_t  x, y;

    x = (*(fleet_shard_t *const *) a)->key;
    y = (*(fleet_shard_t *const *) b)->key;

    return x < y ? -1 : x > y;
}


/* Room for one more in all arrays.  0, or -1. */
static int
shards_grow(fleet_t *f)
{
    size_t   capacity;
    void    *shards, *keys, *candidates, *of;

    if (f->nshards < f->capacity) {
        return 0;
    }

    capacity = f->capacity == 0 ? 16 : f->capacity * 2;
    shards = realloc(f->shards, capacity * sizeof(f->shards[0]));
    f->shards = shards != NULL ? shards : f->shards;
    keys = realloc(f->by_key, capacity * sizeof(f->by_key[0]));
    f->by_key = keys != NULL ? keys : f->by_key;
    candidates = realloc(f->candidates, capacity * sizeof(f->candidates[0]));
    f->candidates = candidates != NULL ? candidates : f->candidates;
    of = realloc(f->candidate_of, capacity * sizeof(f->candidate_of[0]));
    f->candidate_of = of != NULL ? of : f->candidate_of;

    if (shards == NULL || keys == NULL || candidates == NULL || of == NULL) {
        return -1;
    }

    f->capacity = capacity;

    return 0;
}


/* The shard with this id among the first n, which are in order, or a new
   one. */
static fleet_shard_t *
shard_get(fleet_t *f, const char *id, size_t n)
{
    fleet_shard_t  *s, **found, *key, sought;

    strcpy(sought.id, id);
    key = &sought;
    found = bsearch(&key, f->shards, n, sizeof(f->shards[0]), by_id);

    if (found != NULL) {
        return *found;
    }

    if (f->nshards == FLEET_SHARDS_MAX || shards_grow(f) != 0) {
        return NULL;
    }

    s = calloc(1, sizeof(*s));

    if (s != NULL) {
        strcpy(s->id, id);
        f->shards[f->nshards++] = s;
    }

    return s;
}


static uint64_t
key_of(const llmgw_member_t *member)
{
    return XXH3_64bits_withSeed(member->id, strlen(member->id),
                                member->replica_start_ms);
}


static int
is_far(const fleet_t *f, const llmgw_shard_t *said)
{
    return f->options.zone[0] != '\0'
           && strcmp(f->options.zone, said->zone) != 0;
}


static void
shard_set(fleet_t *f, fleet_shard_t *s, const llmgw_member_t *member,
    const llmgw_shard_t *said)
{
    uint64_t  key;

    /* A restarted agent does not know yet when its process has started. */

    key = member->replica_start_ms == 0 && s->key != 0 ? s->key
                                                       : key_of(member);

    if (s->key != key) {
        ban_lift(&s->ban);
        s->key = key;
        s->full_until_ms = 0;
    }

    s->first = said->first;
    s->last = said->last;
    s->capacity = member->max_capacity;
    s->is_loaded = said->is_loaded;
    s->is_far = is_far(f, said);
    s->is_match = f->lists[s->list].is_match
                  && said->layers == f->want.layers;
    s->is_dead = member->liveness == LLMGW_LIVENESS_DEAD;
    s->is_down = member->service == LLMGW_SERVICE_DOWN;
    s->is_stalled = member->service == LLMGW_SERVICE_STALLED;
    s->is_suspect = member->liveness == LLMGW_LIVENESS_SUSPECT;
    s->is_usable = llmgw_shard_is_advertised(member)
                   && member->service == LLMGW_SERVICE_READY
                   && !member->draining
                   && address_parse(member->grpc, &s->address) == 0;
}


static void
view_take_member(fleet_t *f, size_t i, size_t known)
{
    ssize_t                list;
    llmgw_shard_t          said;
    fleet_shard_t         *s;
    const llmgw_member_t  *member;

    member = &f->view.members[i];

    if (llmgw_member_shard(member, &said) != 0) {
        return;
    }

    list = list_find(f, member->models);

    if (list < 0 || !f->lists[list].is_same_model) {
        return;
    }

    s = shard_get(f, member->id, known);

    if (s != NULL) {
        s->is_listed = 1;
        s->list = (size_t) list;
        s->record = i;
        shard_set(f, s, member, &said);
    }
}


static void
view_take_loads(fleet_t *f)
{
    size_t                      i;
    fleet_shard_t              *s;
    const llmgw_member_load_t  *load;

    for (i = 0; i < f->nshards; i++) {
        s = f->shards[i];

        if (s->is_listed) {
            load = &f->view.loads[s->record];
            s->active = load->active_requests;
            s->waiting = load->engine.waiting;
        }
    }
}


/*
 * Takes the shards of a view.  Unlisted ones stay, and are not usable.  Lists
 * that were read for other views are forgotten when there is no space for new
 * ones.
 */
static void
view_take(fleet_t *f)
{
    size_t  i, known;

    if (f->nlists == LLMGW_MEMBERS_LISTS) {
        f->nlists = 0;
    }

    known = f->nshards;

    for (i = 0; i < known; i++) {
        f->shards[i]->is_listed = 0;
        f->shards[i]->is_usable = 0;
        f->shards[i]->is_match = 0;
    }

    for (i = 0; i < f->view.n; i++) {
        view_take_member(f, i, known);
    }

    if (f->nshards > 0) {
        qsort(f->shards, f->nshards, sizeof(f->shards[0]), by_id);
        memcpy(f->by_key, f->shards, f->nshards * sizeof(f->shards[0]));
        qsort(f->by_key, f->nshards, sizeof(f->by_key[0]), by_key);
    }

    view_take_loads(f);
    f->is_dirty = 1;
}


/* --- the segment */

/* Reads the segment.  DONE and UNCHANGED: the view is that of the segment. */
static llmgw_members_rc_t
view_read(fleet_t *f, char *error)
{
    llmgw_members_rc_t  rc;

    if (!f->is_read_again
        && llmgw_members_reader_generation(f->reader) == f->view.generation)
    {
        rc = llmgw_members_read_loads(f->reader, &f->view);

        if (rc == LLMGW_MEMBERS_DONE) {
            view_take_loads(f);
        }

        if (rc != LLMGW_MEMBERS_UNCHANGED) {
            return rc;
        }
    }

    rc = llmgw_members_read(f->reader, &f->view, error);

    if (rc == LLMGW_MEMBERS_DONE) {
        f->is_read_again = 0;
        view_take(f);
    }

    return rc;
}


static view_state_t
view_judge(const fleet_t *f, llmgw_members_rc_t rc)
{
    if (rc == LLMGW_MEMBERS_ABSENT) {
        return VIEW_ABSENT;
    }

    if (rc == LLMGW_MEMBERS_REFUSED || rc == LLMGW_MEMBERS_ESYSTEM) {
        return VIEW_REFUSED;
    }

    return fleet_now_ms() > f->view.heartbeat_ms + VIEW_STALE_MS ? VIEW_STALE
                                                                 : VIEW_FRESH;
}


static void
view_enter(fleet_t *f, view_state_t state, const char *error)
{
    if (f->view_state == state) {
        return;
    }

    f->view_state = state;
    log_write(f->log, state == VIEW_FRESH ? LOG_INFO : LOG_WARN,
              "members segment \"%s\" %s%s%s", f->options.members,
              view_states[state], error[0] != '\0' ? ": " : "", error);
}


void
view_look(fleet_t *f)
{
    char                error[LLMGW_MEMBERS_ERROR_BYTES];
    llmgw_members_rc_t  rc, read;

    rc = llmgw_members_reader_check(f->reader, error);

    if (rc != LLMGW_MEMBERS_DONE && rc != LLMGW_MEMBERS_UNCHANGED
        && rc != LLMGW_MEMBERS_BUSY)
    {
        view_enter(f, view_judge(f, rc), error);
        return;
    }

    if (rc == LLMGW_MEMBERS_DONE) {
        f->is_read_again = 1;
    }

    read = view_read(f, error);
    view_enter(f, view_judge(f, read), error);
}


int
view_open(fleet_t *f)
{
    f->lists = calloc(LLMGW_MEMBERS_LISTS, sizeof(f->lists[0]));
    f->reader = llmgw_members_reader_create(f->options.members);

    return f->lists != NULL && f->reader != NULL && shards_grow(f) == 0 ? 0
                                                                        : -1;
}


void
view_close(fleet_t *f)
{
    size_t  i;

    for (i = 0; i < f->nshards; i++) {
        free(f->shards[i]);
    }

    free(f->shards);
    free(f->by_key);
    free(f->candidates);
    free(f->candidate_of);
    free(f->lists);
    llmgw_members_reader_destroy(f->reader);
    llmgw_members_view_done(&f->view);
}
