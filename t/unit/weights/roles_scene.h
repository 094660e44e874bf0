
/* Clients of the machine of roles, their events, and a clock. */

#ifndef ROLES_SCENE_H
#define ROLES_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weights/roles.h"


#define NCLIENTS  10
#define TOLD_MAX  64

typedef struct {
    roles_t          roles;
    uint64_t         now_ms;
    roles_client_t   clients[NCLIENTS];
    int              nreclaims;
    int              ntold;
    struct {
        int            client;
        roles_event_t  event;
    } told[TOLD_MAX];
} scene_t;

static scene_t  s;


static void
on_event(void *data, roles_client_t *client, roles_event_t event)
{
    assert_ptr_equal(data, &s);
    assert_true(s.ntold < TOLD_MAX);
    s.told[s.ntold].client = (int) (client - s.clients);
    s.told[s.ntold++].event = event;
}


static void
on_reclaim(void *data)
{
    s.nreclaims++;
}


static void
scene_begin(uint64_t window_ms)
{
    static const roles_callbacks_t  callbacks = { on_event, on_reclaim };

    memset(&s, 0, sizeof(s));
    s.now_ms = 1000;
    roles_init(&s.roles, s.now_ms + window_ms, &callbacks, &s);
}


static const char *
ask(int client, roles_mode_t mode, uint64_t timeout_ms)
{
    return roles_ask(&s.roles, &s.clients[client], mode, timeout_ms, s.now_ms);
}


static void
pass(uint64_t ms)
{
    s.now_ms += ms;
    roles_tick(&s.roles, s.now_ms);
}

#endif /* ROLES_SCENE_H */
