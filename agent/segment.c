
/*
 * The members segment, as far as the agent drives it: what the swim knows is
 * published before the loop sleeps, each difference goes to the log and to
 * listeners, and each second there is a heartbeat.  If the segment cannot be
 * written, this is logged once and shown in the status; the heartbeat tries
 * again, and nginx keeps its view.
 */

#include <stdio.h>
#include <string.h>

#include "agent/agent_inner.h"
#include "state/journal.h"


static void
agent_segment_journal(void *data, const llmgw_member_t *before,
    const llmgw_member_t *after)
{
    agent_t  *agent = data;

    journal_change(agent->log, before, after);

    if (agent->control != NULL) {
        control_tell(agent->control, before, after);
    }
}


static void
agent_segment_trouble(agent_t *agent, const char *reason)
{
    if (agent->trouble[0] == '\0') {
        log_write(agent->log, LOG_WARN,
                  "members segment \"%s\" cannot be written: %s, retrying",
                  agent->settings->members, reason);
        snprintf(agent->trouble, sizeof(agent->trouble), "%s", reason);
    }
}


static void
agent_segment_well(agent_t *agent)
{
    if (agent->trouble[0] != '\0') {
        log_write(agent->log, LOG_INFO,
                  "members segment \"%s\" can be written again",
                  agent->settings->members);
    }

    agent->trouble[0] = '\0';
}


/* publish_source_t's at, over the swim's table. */
static void
agent_segment_at(const void *data, size_t i, publish_item_t *item)
{
    const table_t   *table = data;
    const member_t  *member;

    member = table->members[i];
    item->member = &member->facts;
    item->load = &member->load;
    item->models = member->models;
    item->models_bytes = member->models_bytes;
}


void
agent_segment_publish(agent_t *agent)
{
    char               error[LLMGW_MEMBERS_ERROR_BYTES];
    uint64_t           began_us;
    const swim_t      *swim;
    publish_source_t   source;

    began_us = clock_mono_us(agent->clock);
    swim = node_swim(agent->node);
    source.n = swim_table(swim)->n;
    source.data = swim_table(swim);
    source.at = agent_segment_at;

    publish_set_isolated(agent->publish, swim_is_isolated(swim));

    if (publish_flush(agent->publish, &source, began_us, error) != 0) {
        agent_segment_trouble(agent, error);
    }

    publish_took(agent->publish, clock_mono_us(agent->clock) - began_us);
}


/*
 * Publishes together what changed in this iteration, unless the last
 * publication was just now.  Then the loop sleeps no longer than until the next
 * one is due, and 0 is returned.
 */
int
agent_segment_flush(agent_t *agent)
{
    uint64_t  wait_us;

    wait_us = publish_wait_us(agent->publish, clock_mono_us(agent->clock));

    if (wait_us != 0 && !ev_is_active(&agent->publish_due)) {
        ev_timer_set(&agent->publish_due, wait_us / 1e6, 0.);
        ev_timer_start(agent->loop, &agent->publish_due);

    } else if (wait_us == 0 && agent->trouble[0] == '\0') {
        agent_segment_publish(agent);
    }

    return wait_us == 0;
}


/* The timer only wakes the loop; then agent_segment_flush() runs. */
static void
agent_segment_due(struct ev_loop *loop, ev_timer *timer, int events)
{
}


void
agent_segment_beat(agent_t *agent)
{
    char  error[LLMGW_MEMBERS_ERROR_BYTES];

    if (publish_heartbeat(agent->publish,
                          clock_mono_us(agent->clock) / 1000, error) != 0)
    {
        agent_segment_trouble(agent, error);
        return;
    }

    agent_segment_well(agent);
    agent_segment_publish(agent);
}


/* The writer has the lists of its predecessor's segment, too. */
const char *
agent_segment_models(void *data, uint64_t list, size_t *bytes)
{
    agent_t  *agent = data;

    return publish_models(agent->publish, list, bytes);
}


/*
 * nginx serves by the view that is in the segment; a new agent continues from
 * it, so that its first publication takes away nothing that is alive.  A
 * segment that is missing or invalid counts as one without members.
 */
void
agent_segment_restore(agent_t *agent)
{
    char                     error[LLMGW_MEMBERS_ERROR_BYTES];
    llmgw_members_view_t     view;
    llmgw_members_reader_t  *reader;

    if (agent->settings->members == NULL) {
        return;
    }

    reader = llmgw_members_reader_create(agent->settings->members);
    if (reader == NULL) {
        return;
    }

    memset(&view, 0, sizeof(view));

    if (llmgw_members_reader_check(reader, error) == LLMGW_MEMBERS_DONE
        && llmgw_members_read(reader, &view, error) == LLMGW_MEMBERS_DONE)
    {
        node_restore(agent->node, &view);
    }

    llmgw_members_view_done(&view);
    llmgw_members_reader_destroy(reader);
}


void
agent_segment_init(agent_t *agent)
{
    ev_init(&agent->publish_due, agent_segment_due);
}


int
agent_segment_create(agent_t *agent, char *error)
{
    agent->publish = publish_create(agent->settings->members,
                                    TABLE_MAX_MEMBERS,
                                    agent_segment_journal, agent, error);
    if (agent->publish == NULL) {
        return -1;
    }

    if (error[0] != '\0') {
        agent_segment_trouble(agent, error);
    }

    return 0;
}


void
agent_segment_destroy(agent_t *agent)
{
    ev_timer_stop(agent->loop, &agent->publish_due);

    if (agent->publish != NULL) {
        publish_destroy(agent->publish);
    }
}
