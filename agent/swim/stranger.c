
/*
 * How a stranger becomes a member.
 *
 * A stranger is an id that an update names, or that sent a datagram, and that
 * is no member yet.  It is pinged at its address, up to three times, and
 * becomes a member when it answers for itself (swim/table/candidate.h says
 * why).  If it had sent a JOIN, it then gets the table.
 */

#include <string.h>

#include "swim/swim_inner.h"


static void
stranger_ping(swim_t *swim, candidate_t *candidate, uint64_t now_us)
{
    address_t       address;
    swim_message_t  message;

    candidate->tries++;
    candidate->next_us = now_us + CANDIDATE_RETRY_US;

    if (address_parse(candidate->address, &address) != 0) {
        return;         /* it has no valid address, and is forgotten after its
                           tries */
    }

    memset(&message, 0, sizeof(message));
    message.type = PACKET_PING;
    message.to = &address;
    message.target_id = candidate->id;
    message.sequence = candidate->sequence;
    message.is_bare = 1;

    swim_send(swim, &message, now_us);
}


void
stranger_add(swim_t *swim, const llmgw_member_t *record,
    uint64_t join_sequence, uint64_t now_us)
{
    candidate_t  *candidate;

    candidate = candidate_find(&swim->candidates, record->id);

    if (candidate == NULL) {
        candidate = candidate_new(&swim->candidates, record->id);

        if (candidate == NULL) {
            swim->counters.strangers_refused++;
            return;
        }

        candidate->sequence = ++swim->sequence;
        candidate->next_us = now_us;
        swim->candidates.next_us = now_us;
        strcpy(candidate->address, record->address);
    }

    if (join_sequence != 0) {
        candidate->join_sequence = join_sequence;

        /* an address from the stranger itself replaces one from others */
        strcpy(candidate->address, record->address);
    }
}


/*
 * Takes an answer.  A member is added with the address that has answered a
 * ping.  If the answer names another address, the stranger is pinged there, if
 * it has tries left.
 */
member_t *
stranger_ack(swim_t *swim, const packet_t *packet, uint64_t now_us)
{
    uint64_t                join_sequence;
    member_t               *member;
    candidate_t            *candidate;
    const member_update_t  *update;

    update = swim_own_word(packet);
    candidate = candidate_find(&swim->candidates, packet->head.sender_id);

    if (update == NULL || candidate == NULL
        || candidate->sequence != packet->head.sequence)
    {
        return NULL;
    }

    if (strcmp(candidate->address, update->facts.address) != 0) {
        strcpy(candidate->address, update->facts.address);
        candidate->sequence = ++swim->sequence;
        return NULL;
    }

    join_sequence = candidate->join_sequence;
    candidate_forget(&swim->candidates, candidate);

    member = swim_add(swim, update, now_us);
    if (member == NULL) {
        return NULL;
    }

    if (join_sequence != 0) {
        join_asked(swim, member, join_sequence, now_us);
    }

    join_met(swim, member, now_us);

    return member;
}


static void
stranger_count_next(candidates_t *candidates)
{
    size_t  i;

    candidates->next_us = SWIM_NEVER;

    for (i = 0; i < candidates->n; i++) {
        if (candidates->entries[i].next_us < candidates->next_us) {
            candidates->next_us = candidates->entries[i].next_us;
        }
    }
}


/* Walks backwards, since forgetting one moves the last one into its place. */
void
stranger_tick(swim_t *swim, uint64_t now_us)
{
    size_t         i, sent;
    candidate_t   *candidate;
    candidates_t  *candidates;

    candidates = &swim->candidates;
    sent = 0;

    for (i = candidates->n; i > 0 && sent < CANDIDATE_BURST; i--) {
        candidate = &candidates->entries[i - 1];

        if (candidate->next_us > now_us) {
            continue;
        }

        if (candidate->tries == CANDIDATE_TRIES) {
            candidate_forget(candidates, candidate);
            continue;
        }

        stranger_ping(swim, candidate, now_us);
        sent++;
    }

    stranger_count_next(candidates);

    if (sent == CANDIDATE_BURST) {
        candidates->burst_us = now_us + CANDIDATE_BURST_US;
    }
}


uint64_t
stranger_next_us(const swim_t *swim)
{
    const candidates_t  *candidates;

    candidates = &swim->candidates;

    return candidates->next_us > candidates->burst_us ? candidates->next_us
                                                      : candidates->burst_us;
}
