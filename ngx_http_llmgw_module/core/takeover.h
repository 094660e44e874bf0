
/*
 * Takeovers: how often a group's active engine became another one, and how long
 * the last time took, as this gateway saw it.
 *
 *     the leader lives  --- its record is dead, or a greater epoch is
 *          ^                given out ---> it is gone, and time runs
 *          |                                        |
 *          +--- another process leads <-------------+
 *               a takeover: active_ms; its first token: first_token_ms
 *
 * All workers of a gateway share these and see each view one after the other,
 * so each passes the generation of its view: an older view changes nothing, and
 * an equal one is known already.  They only count: standby.h decides from the
 * view alone which engine is used.
 *
 * The first LLMGW_TAKEOVERS_MAX groups are counted, and stay as long as the
 * memory does.  The caller holds a lock.  Pure.
 */

#ifndef LLMGW_TAKEOVER_H
#define LLMGW_TAKEOVER_H

#include <stdint.h>


#define LLMGW_TAKEOVERS_MAX        32
#define LLMGW_TAKEOVER_NAME_BYTES  32       /* of a group, with the NUL */

typedef struct {
    char      name[LLMGW_TAKEOVER_NAME_BYTES];
    uint64_t  generation;       /* of the newest view that was noted */
    uint64_t  process;          /* that led last; 0: none has led */
    uint64_t  gone_ms;          /* since when it is gone; 0: it is not */
    uint64_t  began_ms;         /* the last takeover: gone_ms before it */
    uint64_t  count;
    uint64_t  active_ms;        /* how long the last takeover took until another
                                   engine was active */
    uint64_t  first_token_ms;   /* and until that engine's first token */
    uint32_t  has_first_token;
    uint32_t  awaits_token;     /* may be read without the lock */
} llmgw_takeover_t;

typedef struct {
    uint32_t          n;
    llmgw_takeover_t  groups[LLMGW_TAKEOVERS_MAX];
} llmgw_takeovers_t;

/* A group as a view shows it. */
typedef struct {
    uint64_t  generation;       /* of the view */
    uint64_t  process;          /* of the leader; with is_led */
    int       is_led;           /* an active engine lives */
} llmgw_takeover_view_t;


/* The group of that name, found or added; NULL: there are too many. */
llmgw_takeover_t *llmgw_takeovers_find(llmgw_takeovers_t *takeovers,
    const char *name);

/* 1: this view shows a takeover that was not seen before. */
int llmgw_takeover_see(llmgw_takeover_t *takeover,
    const llmgw_takeover_view_t *view, uint64_t now_ms);

/* That process has brought a client a token, its first one or a later one. */
void llmgw_takeover_token(llmgw_takeover_t *takeover, uint64_t process,
    uint64_t now_ms);

#endif /* LLMGW_TAKEOVER_H */
