
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/doctor/check_inner.h"


/* In the order of a request's way: an earlier fault may explain later ones. */
static const doctor_check_t  doctor_checks[] = {
    { "agent", { "socket" }, "it answers, and knows its cluster",
      doctor_check_agent },
    { "versions", { "agent" }, "all that were seen are of one version",
      doctor_check_versions },
    { "keyring", { "agent" }, "gossip is encrypted, or stays on this host",
      doctor_check_keyring },
    { "members", { "members" }, "all are ALIVE, and all replicas READY",
      doctor_check_members },
    { "clock", { "agent", "members" }, "the clocks of all members agree",
      doctor_check_clock },
    { "udp", { "members" }, "datagrams pass in both directions",
      doctor_check_udp },
    { "tcp", { "ports" }, "every port of a member takes connections",
      doctor_check_tcp },
    { "replicas", { "replicas" }, "all answer a question about their health",
      doctor_check_replicas },
    { "certificates", { "certs" }, "all are valid for two weeks and more",
      doctor_check_certs },
    { "segment", { "segment" }, "it is fresh", doctor_check_segment },
    { "disk", { "agent", "disks" }, "there is room, and what is kept is "
      "written", doctor_check_disk },
    { "memory", { "memory" }, "there is room below each limit",
      doctor_check_memory },
    { "gateway", { "gateway" }, "its status page answers",
      doctor_check_gateway },
    { "module", { "workers" }, "workers run the file that is on disk",
      doctor_check_module },
    { "descriptors", { "conf", "workers" }, "enough for all connections",
      doctor_check_descriptors },
    { "connections", { "conf", "page" }, "enough for all that may run and "
      "wait", doctor_check_connections },
    { "streams", { "conf" }, "clients' connections may carry enough of them",
      doctor_check_streams },
    { "keepalive", { "conf" }, "clients' connections last",
      doctor_check_keepalive },
    { "body", { "conf" }, "long prompts are accepted", doctor_check_body },
    { "zone", { "page" }, "it has room for twice the replicas, or more",
      doctor_check_zone },
    { "models", { "page" }, "each replica serves what its pool does",
      doctor_check_models },
    { "keys", { "keys" }, "files are right, and no key ends this week",
      doctor_check_keys },
    { "engines", { "engines" }, "all answer, and show their metrics",
      doctor_check_engines },
    { "context", { "engines" }, "engines of one model have one context",
      doctor_check_context }
};

#define DOCTOR_NCHECKS  (sizeof(doctor_checks) / sizeof(doctor_checks[0]))


const char *
doctor_level_name(doctor_level_t level)
{
    static const char  *names[] = { "ok", "unchecked", "warning", "wrong" };

    return names[level];
}


void
doctor_say(doctor_report_t *report, doctor_level_t level, const char *remedy,
    const char *format, ...)
{
    json_t   *text;
    va_list   args;

    va_start(args, format);
    text = json_vsprintf(format, args);
    va_end(args);

    json_array_append_new(report->lines, json_pack("{s:s, s:s, s:o, s:s?}",
                              "check", report->check,
                              "level", doctor_level_name(level),
                              "text", text ? text : json_string("not UTF-8"),
                              "do", remedy));
    report->n[level]++;
}


const char *
doctor_why(const json_t *fact)
{
    if (fact == NULL) {
        return "it was not gathered";
    }

    return json_is_object(fact)
           ? json_string_value(json_object_get(fact, "why")) : NULL;
}


static void
doctor_run(const doctor_check_t *check, const json_t *facts,
    doctor_report_t *report)
{
    size_t       i, before;
    const char  *why;

    report->check = check->name;

    for (i = 0; i < DOCTOR_MAX_NEEDS && check->needs[i] != NULL; i++) {
        why = doctor_why(json_object_get(facts, check->needs[i]));

        if (why != NULL) {
            doctor_say(report, DOCTOR_UNCHECKED, NULL, "%s", why);
            return;
        }
    }

    before = json_array_size(report->lines);
    check->run(facts, report);

    if (json_array_size(report->lines) == before) {
        doctor_say(report, DOCTOR_OK, NULL, "%s", check->good);
    }
}


void
doctor_check(const json_t *facts, doctor_report_t *report)
{
    size_t  i;

    for (i = 0; i < DOCTOR_NCHECKS; i++) {
        doctor_run(&doctor_checks[i], facts, report);
    }
}
