
/*
 * 100,000 random events to the machine, and to a model of it that has facts
 * and no states: after each event both must have reported the same, in order.
 */

#include "common/rnd.h"
#include "t/unit/weights/roles_scene.h"


#define NONE    (-1)
#define EVENTS  100000


typedef struct {
    int           is_here;
    int           arrived;      /* order of arrival; 0: no role */
    int           waits;
    roles_mode_t  mode;
    uint64_t      until_ms;
    int           writes;
    int           reads;
    int           adopts;
} model_client_t;

static struct {
    model_client_t  clients[NCLIENTS];
    int             narrived;
    int             is_committed;
    int             is_hashing;         /* of a commit or an adoption */
    int             is_adoption;
    int             is_reclaiming;
    int             nreclaims;
    int             has_bytes;
    uint64_t        no_rw_until_ms;
    int             ntold;
    struct {
        int            client;
        roles_event_t  event;
    } told[TOLD_MAX];
} m;


static int
model_writer(void)
{
    int  i;

    for (i = 0; i < NCLIENTS; i++) {
        if (m.clients[i].writes) {
            return i;
        }
    }

    return NONE;
}


static void
model_tell(int i, roles_event_t event)
{
    m.told[m.ntold].client = i;
    m.told[m.ntold++].event = event;
}


static int
model_is_free(void)
{
    return !m.is_committed && !m.is_hashing && !m.is_reclaiming
           && model_writer() == NONE;
}


/* The client that has a role and came first after number `after`. */
static int
model_next(int after)
{
    int  i, best;

    best = NONE;

    for (i = 0; i < NCLIENTS; i++) {
        if (m.clients[i].arrived > after
            && (best == NONE
                || m.clients[i].arrived < m.clients[best].arrived))
        {
            best = i;
        }
    }

    return best;
}


static void
model_leave(int i)
{
    int  is_here;

    is_here = m.clients[i].is_here;
    memset(&m.clients[i], 0, sizeof(m.clients[i]));
    m.clients[i].is_here = is_here;
}


static void
model_look(int i)
{
    model_client_t  *c;

    c = &m.clients[i];

    if (m.is_committed) {
        c->waits = 0;
        c->reads = 1;
        model_tell(i, ROLES_GRANTED);

    } else if (c->mode != ROLES_RO && model_is_free()
               && s.now_ms >= m.no_rw_until_ms)
    {
        c->waits = 0;
        c->writes = 1;
        model_tell(i, ROLES_GRANTED);

    } else if (s.now_ms >= c->until_ms) {
        model_leave(i);
        model_tell(i, ROLES_TIMED_OUT);
    }
}


static void
model_settle(void)
{
    int  i, after;

    for (after = 0; (i = model_next(after)) != NONE; /* void */ ) {
        after = m.clients[i].arrived;

        if (m.clients[i].waits) {
            model_look(i);
        }
    }
}


static void
model_arrive(int i)
{
    m.clients[i].arrived = ++m.narrived;
}


/* --- random events, to both */

typedef struct {
    rnd_t     random;
    unsigned  ndone[12];
} storm_t;


static unsigned
storm_draw(storm_t *storm, unsigned n)
{
    return (unsigned) rnd_below(&storm->random, n);
}


static void
storm_ask(storm_t *storm, int i)
{
    uint64_t      timeout_ms;
    const char   *reason;
    roles_mode_t  mode;

    mode = storm_draw(storm, 3) == 0 ? ROLES_RO : ROLES_RW_OR_RO;
    timeout_ms = storm_draw(storm, 8) == 0 ? 0 : storm_draw(storm, 3000);
    reason = ask(i, mode, timeout_ms);

    if (m.clients[i].arrived) {
        assert_string_equal(reason, "again");
        return;
    }

    assert_null(reason);
    model_arrive(i);
    m.clients[i].waits = 1;
    m.clients[i].mode = mode;
    m.clients[i].until_ms = s.now_ms + timeout_ms;
    model_settle();
}


static void
storm_put(storm_t *storm, int i)
{
    int  may;

    may = m.clients[i].writes && !m.has_bytes;
    assert_int_equal(roles_put(&s.roles, &s.clients[i]) == NULL, may);
    m.has_bytes |= may;
}


static void
storm_commit(storm_t *storm, int i)
{
    int  may;

    may = m.clients[i].writes && m.has_bytes && !m.is_hashing;
    assert_int_equal(roles_may_commit(&s.roles, &s.clients[i]) == NULL, may);

    if (may) {
        roles_commit(&s.roles);
        m.is_hashing = 1;
    }
}


/* The writer ends before its commit. */
static void
model_abort(void)
{
    m.is_reclaiming = m.has_bytes;
    m.nreclaims += m.has_bytes;
    m.has_bytes = 0;

    if (!m.is_reclaiming) {
        model_settle();
    }
}


static void
storm_abort(storm_t *storm, int i)
{
    int  may;

    may = m.clients[i].writes && !m.is_hashing;
    assert_int_equal(roles_abort(&s.roles, &s.clients[i], s.now_ms) == NULL,
                     may);

    if (may) {
        model_leave(i);
        model_abort();
    }
}


static int
model_has_adopter(void)
{
    int  i, n;

    for (i = 0, n = 0; i < NCLIENTS; i++) {
        n += m.clients[i].adopts;
    }

    return n > 0;
}


static void
storm_gone(storm_t *storm, int i)
{
    int  aborts;

    aborts = m.clients[i].writes && !m.is_hashing;
    roles_gone(&s.roles, &s.clients[i], s.now_ms);
    model_leave(i);

    if (aborts) {
        model_abort();

    } else if (m.is_adoption && !model_has_adopter()) {
        m.is_hashing = m.is_adoption = 0;
        m.is_reclaiming = 1;
        m.nreclaims++;
    }
}


static void
storm_adopt(storm_t *storm, int i)
{
    int  may;

    may = !m.clients[i].arrived && !m.is_reclaiming
          && (model_is_free() || m.is_committed || m.is_adoption);
    assert_int_equal(roles_may_adopt(&s.roles, &s.clients[i]) == NULL, may);

    if (!may) {
        return;
    }

    roles_adopt(&s.roles, &s.clients[i]);
    model_arrive(i);

    if (m.is_committed) {
        m.clients[i].reads = 1;
        model_tell(i, ROLES_DONE);

    } else {
        m.clients[i].adopts = 1;
        m.is_hashing = 1;
        m.is_adoption = 1;
    }
}


static void
model_hashed(int is_right)
{
    int  i, after;

    for (after = 0; (i = model_next(after)) != NONE; /* void */ ) {
        after = m.clients[i].arrived;

        if (!m.clients[i].writes && !m.clients[i].adopts) {
            continue;
        }

        if (is_right) {
            m.clients[i].writes = m.clients[i].adopts = 0;
            m.clients[i].reads = 1;
            model_tell(i, ROLES_DONE);

        } else {
            model_leave(i);
            model_tell(i, ROLES_FAILED);
        }
    }

    m.is_hashing = m.is_adoption = m.has_bytes = 0;
    m.is_committed = is_right;
    m.is_reclaiming = !is_right;
    m.nreclaims += !is_right;

    if (is_right) {
        model_settle();
    }
}


static void
storm_hashed(storm_t *storm, int i)
{
    int  is_right;

    if (m.is_hashing) {
        is_right = storm_draw(storm, 3) == 0;
        roles_hashed(&s.roles, is_right, s.now_ms);
        model_hashed(is_right);
    }
}


static void
storm_reclaimed(storm_t *storm, int i)
{
    if (m.is_reclaiming) {
        roles_reclaimed(&s.roles, s.now_ms);
        m.is_reclaiming = 0;
        model_settle();
    }
}


static void
storm_pass(storm_t *storm, int i)
{
    pass(storm_draw(storm, 4) == 0 ? storm_draw(storm, 2000)
                                   : storm_draw(storm, 20));
    model_settle();
}


/* Lets time pass up to the moment for which the machine wants to be called. */
static void
storm_next(storm_t *storm, int i)
{
    if (roles_next_ms(&s.roles) != UINT64_MAX) {
        pass(roles_next_ms(&s.roles) - s.now_ms);
        model_settle();
        assert_true(s.ntold > 0);
    }
}


static void
storm_restart(storm_t *storm, int i)
{
    uint64_t  now_ms;

    if (storm_draw(storm, m.is_committed ? 20 : 2000) != 0) {
        return;
    }

    now_ms = s.now_ms;
    scene_begin(0);
    s.now_ms = now_ms;
    s.roles.no_rw_until_ms = now_ms + storm_draw(storm, 1000);
    memset(&m, 0, sizeof(m));
    m.no_rw_until_ms = s.roles.no_rw_until_ms;
}


static const struct {
    unsigned    weight;
    void      (*run)(storm_t *storm, int i);
} storm_events[] = {
    { 20, storm_ask }, { 12, storm_put }, { 12, storm_commit },
    { 3, storm_abort }, { 10, storm_gone }, { 4, storm_adopt },
    { 5, storm_hashed }, { 10, storm_reclaimed }, { 8, storm_pass },
    { 4, storm_next }, { 4, storm_restart }
};

#define STORM_NEVENTS  (sizeof(storm_events) / sizeof(storm_events[0]))


static size_t
storm_event(storm_t *storm)
{
    size_t    i;
    unsigned  n;

    n = storm_draw(storm, 92);

    for (i = 0; n >= storm_events[i].weight; i++) {
        n -= storm_events[i].weight;
    }

    return i;
}


static roles_role_t
model_role(int i)
{
    const model_client_t  *c;

    c = &m.clients[i];

    return c->waits ? ROLES_WAITER : c->writes ? ROLES_WRITER
           : c->reads ? ROLES_READER : c->adopts ? ROLES_ADOPTER : ROLES_NONE;
}


/* Checks that both reported the same, in order, and granted the same roles. */
static void
assert_alike(void)
{
    int  i;

    assert_int_equal(s.ntold, m.ntold);

    for (i = 0; i < s.ntold; i++) {
        assert_int_equal(s.told[i].client, m.told[i].client);
        assert_int_equal(s.told[i].event, m.told[i].event);
    }

    s.ntold = 0;
    m.ntold = 0;

    for (i = 0; i < NCLIENTS; i++) {
        assert_int_equal(s.clients[i].role, model_role(i));
    }
}


/* What always holds, whatever the model says. */
static void
assert_sane(void)
{
    int                    nwriters;
    const roles_client_t  *c;

    nwriters = 0;

    for (c = s.roles.first; c != NULL; c = c->next) {
        assert_int_not_equal(c->role, ROLES_NONE);
        nwriters += c->role == ROLES_WRITER;

        if (c->role == ROLES_READER) {
            assert_int_equal(s.roles.state, ROLES_COMMITTED);
        }

        if (c->role == ROLES_WAITER) {
            assert_int_not_equal(s.roles.state, ROLES_COMMITTED);
            assert_true(c->deadline_ms > s.now_ms);
            assert_false(s.roles.state == ROLES_EMPTY && c->mode != ROLES_RO
                         && s.now_ms >= s.roles.no_rw_until_ms);
        }

        if (c->role == ROLES_WRITER) {
            assert_true(s.now_ms >= s.roles.no_rw_until_ms);
        }
    }

    assert_true(nwriters <= 1);
    assert_true(nwriters == 0 || s.roles.state == ROLES_WRITING
                || s.roles.state == ROLES_HASHING);
    assert_true(nwriters == 1 || s.roles.state != ROLES_WRITING);
    assert_int_equal(s.roles.state == ROLES_RECLAIMING, m.is_reclaiming);
    assert_int_equal(s.roles.state == ROLES_COMMITTED, m.is_committed);
    assert_int_equal(s.nreclaims, m.nreclaims);
}


static void
random_events_do_what_the_model_says(void **state)
{
    int       i;
    size_t    event;
    storm_t   storm = { .random = { 1 } };
    unsigned  ntold[ROLES_FAILED + 1] = { 0 };

    scene_begin(0);
    memset(&m, 0, sizeof(m));
    m.no_rw_until_ms = s.now_ms;

    for (i = 0; i < EVENTS; i++) {
        event = storm_event(&storm);
        storm.ndone[event]++;
        storm_events[event].run(&storm, (int) storm_draw(&storm, NCLIENTS));

        if (s.ntold > 0) {
            ntold[s.told[0].event]++;
        }

        assert_alike();
        assert_sane();
    }

    /* Each kind of event happened, and often. */
    for (event = 0; event < STORM_NEVENTS; event++) {
        assert_true(storm.ndone[event] > 1000);
    }

    for (i = 0; i <= ROLES_FAILED; i++) {
        assert_true(ntold[i] > 100);
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(random_events_do_what_the_model_says)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
