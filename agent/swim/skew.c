
/*
 * Epochs that were drawn from a wrong clock.
 *
 * An epoch is the wall clock of a member at its start, and the later one wins.
 * So an epoch far ahead of the time would supersede every later start of its
 * member; it is refused if it is more than PACKET_MAX_AHEAD_US ahead of the
 * receiver's clock.  All agents drop the datagrams of a member with such an
 * epoch.  This must neither last nor go unnoticed:
 *
 *   its own agent    gives the epoch up when its clock has been set right, and
 *                    begins anew at the clock's time; so does a restarted one
 *                    that finds it in the segment (restore.c) or in its state
 *                    file (state/epoch.h)
 *   a receiver       counts, and tells its owner of each such sender once an
 *                    hour, but no more than one in ten seconds: which of the
 *                    two clocks is wrong is for people to find out
 *   a believer       had a wrong clock as well: once that is right, any epoch
 *                    that is not refused replaces one that would be
 *
 * The epoch of a standby group is drawn from the clock of its lock service, and
 * requests go to the engine with the greatest one.  A record with an epoch that
 * is too far ahead is taken as that of an engine that is no standby yet (INIT),
 * and the owner is notified as often as of a sender.  What the segment has of
 * an earlier run is kept: a gateway whose clock is set back keeps what it knew.
 */

#include <string.h>

#include "swim/swim_inner.h"


#define SKEW_REPEAT_US  (3600 * SWIM_S)
#define SKEW_PAUSE_US   (10 * SWIM_S)


/* How far an epoch is ahead; 0: it is not, or the wall clock is not known. */
static uint64_t
skew_us(const swim_t *swim, uint64_t epoch, uint64_t now_us)
{
    uint64_t  wall_us;

    wall_us = now_us + swim->wall_ahead_us;

    return swim->wall_ahead_us != 0 && epoch > wall_us ? epoch - wall_us : 0;
}


int
skew_is_refused(const swim_t *swim, uint64_t epoch, uint64_t now_us)
{
    return skew_us(swim, epoch, now_us) > PACKET_MAX_AHEAD_US;
}


static void
skew_tell(swim_t *swim, const char *id, const address_t *from, uint64_t epoch,
    uint64_t now_us)
{
    if (swim->config.callbacks->on_skew != NULL) {
        swim->config.callbacks->on_skew(swim->config.data, id, from,
                                        skew_us(swim, epoch, now_us));
    }
}


/* The entry of a sender; NULL: it is not remembered. */
static skew_sender_t *
skew_find(skew_t *skew, uint32_t hash)
{
    size_t  i;

    for (i = 0; i < SKEW_SENDERS; i++) {
        if (skew->senders[i].hash == hash && skew->senders[i].logged_us != 0) {
            return &skew->senders[i];
        }
    }

    return NULL;
}


/*
 * Whether the owner is to be notified of the sender now; if so, it is
 * remembered.
 */
static int
skew_is_news(swim_t *swim, uint32_t hash, uint64_t now_us)
{
    skew_t         *skew;
    skew_sender_t  *sender;

    skew = &swim->skew;
    sender = skew_find(skew, hash);

    if (now_us < skew->silent_until_us
        || (sender != NULL && now_us < sender->logged_us + SKEW_REPEAT_US))
    {
        return 0;
    }

    if (sender == NULL) {
        sender = &skew->senders[skew->next++ % SKEW_SENDERS];
    }

    sender->hash = hash;
    sender->logged_us = now_us;
    skew->silent_until_us = now_us + SKEW_PAUSE_US;

    return 1;
}


void
skew_refused(swim_t *swim, const packet_head_t *head, const address_t *from,
    uint64_t now_us)
{
    if (skew_is_news(swim, member_hash(head->sender_id), now_us)) {
        skew_tell(swim, head->sender_id, from, head->sender_epoch, now_us);
    }
}


void
skew_group_refused(swim_t *swim, const llmgw_member_t *member, uint64_t epoch,
    uint64_t now_us)
{
    const swim_callbacks_t  *callbacks;

    callbacks = swim->config.callbacks;
    swim->counters.group_epochs_refused++;

    if (callbacks->on_group_skew != NULL
        && skew_is_news(swim, ~member_hash(member->id), now_us))
    {
        callbacks->on_group_skew(swim->config.data, member->id, member->group,
                                 skew_us(swim, epoch, now_us));
    }
}


void
skew_check_group(swim_t *swim, llmgw_member_t *own, uint64_t now_us)
{
    if (skew_is_refused(swim, own->group_epoch, now_us)) {
        skew_group_refused(swim, own, own->group_epoch, now_us);
        member_refuse_epoch(own);
    }
}


void
skew_own_refused(swim_t *swim, uint64_t epoch, uint64_t now_us)
{
    swim->counters.epochs_refused++;
    skew_tell(swim, swim->own->facts.id, NULL, epoch, now_us);
}


void
skew_check_own(swim_t *swim, uint64_t now_us)
{
    llmgw_member_t  *own;

    own = &swim->own->facts;

    if (!skew_is_refused(swim, own->epoch, now_us)) {
        return;
    }

    skew_own_refused(swim, own->epoch, now_us);

    own->epoch = now_us + swim->wall_ahead_us;
    own->incarnation = 0;
    swim->conflict.epoch = 0;       /* the epoch found before would be refused,
                                       too */
    swim_changed(swim, swim->own, MEMBER_FACTS);
}


void
skew_give_way(const swim_t *swim, member_t *member, uint64_t now_us)
{
    if (skew_is_refused(swim, member->facts.epoch, now_us)) {
        member->facts.epoch = 0;
        member->facts.incarnation = 0;
    }
}
