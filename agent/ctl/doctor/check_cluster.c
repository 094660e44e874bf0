
/* What the agent knows of itself and of its cluster. */

#include <stdlib.h>

#include "ctl/doctor/check_inner.h"
#include "common/address.h"


/* A clock may be measured wrongly by half of a ping's way.  Logs of several
   hosts whose clocks differ by this much cannot be compared. */
#define CHECK_CLOCK_NOTED_MS   2000
#define CHECK_CLOCK_WRONG_MS   60000

/* A single loss is chance. */
#define CHECK_PINGS_LOST       3

/* A member pings each other one once in as many periods as there are members;
   some pings may be lost. */
#define CHECK_HEARD_MS         5000
#define CHECK_HEARD_EACH_MS    1000

/* The cause of an older refusal may be fixed: agents try again each second. */
#define CHECK_DROP_MS          30000

/* The same limit as nginx's; agents write every second. */
#define CHECK_SEGMENT_STALE_MS  3000


void
doctor_check_agent(const json_t *facts, doctor_report_t *report)
{
    const json_t  *agent, *socket;

    agent = json_object_get(facts, "agent");
    socket = json_object_get(facts, "socket");

    if (ctl_text(socket, "error")[0] != '\0') {
        doctor_say(report, DOCTOR_WRONG,
                   "start it, or give -s the socket of one that runs, as its "
                   "user, its group or root", "%s", ctl_text(socket, "error"));

    } else if (json_is_true(json_object_get(agent, "isolated"))) {
        doctor_say(report, DOCTOR_WRONG,
                   "look at this host's network: it cannot reach over half of "
                   "the members",
                   "agent \"%s\" is cut off", ctl_word(agent, "id"));

    } else if (!json_is_true(json_object_get(agent, "joined"))) {
        doctor_say(report, DOCTOR_WARNING,
                   "give it --join with the gossip address of a member",
                   "agent \"%s\" knows no other member",
                   ctl_word(agent, "id"));
    }
}


static void
check_version(const json_t *facts, doctor_report_t *report, const char *fact,
    const char *what, const char *remedy)
{
    const char  *own, *version;

    own = ctl_text(json_object_get(facts, "ctl"), "version");
    version = ctl_text(json_object_get(facts, fact), "version");

    if (version[0] != '\0' && strcmp(own, version) != 0) {
        doctor_say(report, DOCTOR_WARNING, remedy,
                   "%s is of version %s, and llmgwctl of %s", what, version,
                   own);
    }
}


void
doctor_check_versions(const json_t *facts, doctor_report_t *report)
{
    check_version(facts, report, "agent", "the agent",
                  "restart the one that is older: SIGQUIT ends an agent "
                  "without leaving the cluster, and the next one continues");
    check_version(facts, report, "page", "nginx's module",
                  "install one version, and replace nginx's processes (nginx "
                  "-s reload keeps the old module)");
}


static void
check_sealed(const json_t *agent, doctor_report_t *report)
{
    address_t    address;
    const char  *text;

    text = ctl_text(agent, "address");

    if (ctl_text(agent, "key")[0] == '\0'
        && address_parse(text, &address) == 0
        && !address_is_loopback(&address))
    {
        doctor_say(report, DOCTOR_WRONG,
                   "give all agents --keyring with one file of keys",
                   "gossip of \"%s\" at %s has no keyring: each host of the "
                   "network may speak for any member", ctl_word(agent, "id"),
                   text);
    }
}


void
doctor_check_keyring(const json_t *facts, doctor_report_t *report)
{
    size_t         i;
    const char    *reason;
    const json_t  *agent, *drop;

    static const struct {
        const char  *reason, *text, *remedy;
    } drops[] = {
        { "wrong_key", "is sealed with a key that this agent has not",
          "put one keyring on all hosts, and SIGHUP their agents" },
        { "forged", "is sealed with another key of the same id, or changed on "
          "its way", "put one keyring on all hosts, and SIGHUP their agents" },
        { "plain", "is not sealed",
          "give the agent there --keyring with this cluster's keys" },
        { "sealed", "is sealed, and this agent has no keyring",
          "give this agent --keyring with that cluster's keys" },
        { "other_cluster", "is of another cluster",
          "give one --cluster to all agents, or take this address from the "
          "other one's --join" },
        { "version", "is of another version of the protocol",
          "install one version of llmgw-agent" }
    };

    agent = json_object_get(facts, "agent");
    check_sealed(agent, report);

    drop = json_object_get(agent, "last_drop");
    reason = ctl_text(drop, "reason");

    for (i = 0; i < sizeof(drops) / sizeof(drops[0]); i++) {
        if (strcmp(reason, drops[i].reason) == 0
            && ctl_number(drop, "ms") < CHECK_DROP_MS)
        {
            doctor_say(report, DOCTOR_WRONG, drops[i].remedy,
                       "what comes from %s %s", ctl_word(drop, "from"),
                       drops[i].text);
        }
    }
}


static void
check_service(const json_t *member, doctor_report_t *report)
{
    const char  *id, *service;

    id = ctl_word(member, "id");
    service = ctl_text(member, "service");

    if (strcmp(service, "STALLED") == 0) {
        doctor_say(report, DOCTOR_WRONG,
                   "its engine runs requests and makes no progress, or its "
                   "process stands still: look at the log of its adapter",
                   "replica \"%s\" is STALLED", id);

    } else if (strcmp(service, "STARTING") == 0
               && json_object_get(member, "group") == NULL)
    {
        doctor_say(report, DOCTOR_WARNING,
                   "wait for its engine to load; or ask there, llmgwctl -s "
                   "SOCKET doctor --engine-url URL",
                   "replica \"%s\" is STARTING, and gets no requests yet", id);
    }
}


void
doctor_check_members(const json_t *facts, doctor_report_t *report)
{
    size_t       i;
    json_t      *member;
    const char  *id, *state, *cause;

    json_array_foreach(json_object_get(facts, "members"), i, member) {
        id = ctl_word(member, "id");
        state = ctl_text(member, "state");
        cause = ctl_text(member, "cause");

        if (strcmp(state, "DEAD") == 0 && strcmp(cause, "down") == 0) {
            doctor_say(report, DOCTOR_WRONG,
                       "look at the log of its adapter, and start it; if it "
                       "was removed, it is forgotten in ten minutes",
                       "replica \"%s\" is DOWN: its process, or its engine, "
                       "is gone", id);

        } else if (strcmp(state, "DEAD") == 0) {
            doctor_say(report, DOCTOR_WRONG,
                       "look whether its host and its agent run; if it was "
                       "removed, it is forgotten in ten minutes",
                       "member \"%s\" at %s is DEAD: its agent is silent", id,
                       ctl_word(member, "address"));

        } else if (strcmp(state, "SUSPECT") == 0) {
            doctor_say(report, DOCTOR_WARNING,
                       "ask again in some seconds: it refutes that, or is "
                       "DEAD", "member \"%s\" is SUSPECT: its agent did not "
                       "answer", id);

        } else if (strcmp(state, "ALIVE") == 0
                   && strcmp(ctl_text(member, "role"), "gateway") != 0)
        {
            check_service(member, report);
        }
    }
}


void
doctor_check_clock(const json_t *facts, doctor_report_t *report)
{
    size_t         i;
    json_t        *member;
    json_int_t     ahead_ms;
    const json_t  *drop;

    static const char  remedy[] =
        "set the clock that is wrong, and run an NTP service on both hosts";

    drop = json_object_get(json_object_get(facts, "agent"), "last_drop");

    if (strcmp(ctl_text(drop, "reason"), "clock") == 0
        && ctl_number(drop, "ms") < CHECK_DROP_MS)
    {
        doctor_say(report, DOCTOR_WRONG, remedy,
                   "the clock of %s is a day ahead of this host's, or was when "
                   "its agent started: it is no member",
                   ctl_word(drop, "from"));
    }

    json_array_foreach(json_object_get(facts, "members"), i, member) {
        ahead_ms = ctl_number(member, "clock_ahead_ms");

        if (llabs(ahead_ms) > CHECK_CLOCK_NOTED_MS) {
            doctor_say(report, llabs(ahead_ms) > CHECK_CLOCK_WRONG_MS
                       ? DOCTOR_WRONG : DOCTOR_WARNING, remedy,
                       "the clock of \"%s\" is %.1f s %s this host's",
                       ctl_word(member, "id"), llabs(ahead_ms) / 1000.,
                       ahead_ms > 0 ? "ahead of" : "behind");
        }
    }
}


void
doctor_check_udp(const json_t *facts, doctor_report_t *report)
{
    size_t       i;
    json_t      *member, *members, *heard;
    json_int_t   heard_ms;

    members = json_object_get(facts, "members");
    heard_ms = CHECK_HEARD_MS
               + CHECK_HEARD_EACH_MS * (json_int_t) json_array_size(members);

    json_array_foreach(members, i, member) {

        if (ctl_number(member, "pings_lost") < CHECK_PINGS_LOST
            || strcmp(ctl_text(member, "state"), "ALIVE") != 0)
        {
            continue;
        }

        heard = json_object_get(member, "heard_ms");

        if (heard != NULL && json_integer_value(heard) < heard_ms) {
            doctor_say(report, DOCTOR_WRONG,
                       "let UDP from this host through to that address",
                       "\"%s\" at %s is heard, and no datagram from here "
                       "reaches it: UDP passes one way only",
                       ctl_word(member, "id"), ctl_word(member, "address"));
        } else {
            doctor_say(report, DOCTOR_WRONG,
                       "let UDP through in both directions between the gossip "
                       "ports",
                       "no datagram of \"%s\" at %s comes here, though it "
                       "lives", ctl_word(member, "id"),
                       ctl_word(member, "address"));
        }
    }
}


/* nginx may read segments of other clusters, too. */
static int
check_is_own_read(const json_t *segments, const char *own)
{
    size_t   i;
    json_t  *segment;

    json_array_foreach(segments, i, segment) {
        if (strcmp(ctl_text(segment, "path"), own) == 0) {
            return 1;
        }
    }

    return own[0] == '\0';
}


void
doctor_check_segment(const json_t *facts, doctor_report_t *report)
{
    size_t       i;
    json_t      *segment, *segments;
    const char  *path, *own;

    segments = json_object_get(facts, "segment");
    own = ctl_text(json_object_get(facts, "agent"), "segment");

    if (!check_is_own_read(segments, own)) {
        doctor_say(report, DOCTOR_WRONG,
                   "give llmgw_members the path of the agent's --members",
                   "the agent writes %s, and nginx does not read it", own);
    }

    json_array_foreach(segments, i, segment) {
        path = ctl_text(segment, "path");

        if (ctl_text(segment, "error")[0] != '\0') {
            doctor_say(report, DOCTOR_WRONG,
                       "start the gateway's agent with --members, and let the "
                       "user of nginx's workers read the file",
                       "%s: %s", path, ctl_text(segment, "error"));

        } else if (ctl_number(segment, "age_ms") > CHECK_SEGMENT_STALE_MS) {
            doctor_say(report, DOCTOR_WRONG,
                       "start the gateway's agent: nginx routes by what it "
                       "knew last",
                       "%s was written %.1f s ago: it is stale", path,
                       ctl_number(segment, "age_ms") / 1000.);
        }
    }
}
