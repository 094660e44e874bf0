
/*
 * What the doctor's checks report for facts at each threshold, and beside it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/doctor/check.h"
#include "ctl/field.h"


/* The lines of one check of these facts (JSON with ' for "), as "level: text"
   with "|" between them. */
static const char *
says(const char *check, const char *facts)
{
    char             *text, *at;
    size_t            i;
    json_t           *json, *line;
    json_error_t      error;
    doctor_report_t   report = { .lines = json_array() };

    static char  said[2048];

    text = strdup(facts);

    while ((at = strchr(text, '\'')) != NULL) {
        *at = '"';
    }

    json = json_loads(text, 0, &error);

    if (json == NULL) {
        fail_msg("%s in %s", error.text, text);
    }

    doctor_check(json, &report);
    said[0] = '\0';

    json_array_foreach(report.lines, i, line) {
        if (strcmp(ctl_text(line, "check"), check) == 0) {
            snprintf(said + strlen(said), sizeof(said) - strlen(said),
                     "%s%s: %s", said[0] != '\0' ? "|" : "",
                     ctl_text(line, "level"), ctl_text(line, "text"));
        }
    }

    json_decref(report.lines);
    json_decref(json);
    free(text);

    return said;
}


static void
begins(const char *said, const char *with)
{
    if (strncmp(said, with, strlen(with)) != 0) {
        fail_msg("\"%s\" does not begin with \"%s\"", said, with);
    }
}


static void
what_is_not_known_is_never_ok(void **state)
{
    assert_string_equal(says("keyring", "{}"),
                        "unchecked: it was not gathered");
    assert_string_equal(says("keyring", "{'agent':{'why':'because'}}"),
                        "unchecked: because");
    assert_string_equal(says("descriptors",
                             "{'conf':[],'workers':{'why':'none'}}"),
                        "unchecked: none");
}


#define MEMBERS(more)  "{'agent':{},'members':[{'id':'r1','state':'ALIVE',"   \
                       "'address':'10.0.0.2:7946'," more "}]}"


static void
clocks_have_two_thresholds(void **state)
{
    begins(says("clock", MEMBERS("'clock_ahead_ms':2000")), "ok: ");
    assert_string_equal(says("clock", MEMBERS("'clock_ahead_ms':2001")),
                        "warning: the clock of \"r1\" is 2.0 s ahead of this "
                        "host's");
    begins(says("clock", MEMBERS("'clock_ahead_ms':-60000")), "warning: ");
    assert_string_equal(says("clock", MEMBERS("'clock_ahead_ms':-60001")),
                        "wrong: the clock of \"r1\" is 60.0 s behind this "
                        "host's");
}


static void
datagrams_are_judged_by_both_directions(void **state)
{
    begins(says("udp", MEMBERS("'pings_lost':2,'heard_ms':10")), "ok: ");
    assert_string_equal(says("udp", MEMBERS("'pings_lost':3,'heard_ms':5999")),
                        "wrong: \"r1\" at 10.0.0.2:7946 is heard, and no "
                        "datagram from here reaches it: UDP passes one way "
                        "only");
    begins(says("udp", MEMBERS("'pings_lost':3,'heard_ms':6000")),
           "wrong: no datagram of \"r1\"");
    begins(says("udp", MEMBERS("'pings_lost':3")),
           "wrong: no datagram of \"r1\"");
    begins(says("udp", "{'members':[{'id':'r1','state':'DEAD',"
                "'pings_lost':9}]}"), "ok: ");
}


#define AGENT(more)  "{'agent':{'id':'gw','address':'10.0.0.1:7946'" more "}}"


static void
keyring_is_needed_off_loopback_alone(void **state)
{
    begins(says("keyring", AGENT(",'key':null")), "wrong: gossip of \"gw\"");
    begins(says("keyring", AGENT(",'key':'3f2a9c1b'")), "ok: ");
    begins(says("keyring", "{'agent':{'key':null,'address':'127.0.0.1:1'}}"),
           "ok: ");
    begins(says("keyring", AGENT(",'key':'3f2a9c1b','last_drop':"
                "{'reason':'wrong_key','from':'10.0.0.9:1','ms':29999}")),
           "wrong: what comes from 10.0.0.9:1 is sealed with a key");
    begins(says("keyring", AGENT(",'key':'3f2a9c1b','last_drop':"
                "{'reason':'wrong_key','from':'10.0.0.9:1','ms':30000}")),
           "ok: ");
    begins(says("keyring", AGENT(",'key':'3f2a9c1b','last_drop':"
                "{'reason':'malformed','from':'10.0.0.9:1','ms':1}")),
           "ok: ");
}


static void
members_are_named_by_what_is_wrong(void **state)
{
    begins(says("members", "{'members':[{'id':'a','state':'DEAD',"
                "'cause':'down'}]}"), "wrong: replica \"a\" is DOWN");
    begins(says("members", "{'members':[{'id':'a','state':'DEAD',"
                "'cause':'timeout','address':'x'}]}"),
           "wrong: member \"a\" at x is DEAD");
    begins(says("members", "{'members':[{'id':'a','state':'SUSPECT'}]}"),
           "warning: member \"a\" is SUSPECT");
    begins(says("members", "{'members':[{'id':'a','state':'ALIVE',"
                "'role':'replica','service':'STARTING'}]}"),
           "warning: replica \"a\" is STARTING");
    begins(says("members", "{'members':[{'id':'a','state':'ALIVE',"
                "'role':'replica','service':'STARTING','group':'g'},"
                "{'id':'b','state':'LEFT'},"
                "{'id':'gw','state':'ALIVE','role':'gateway',"
                "'service':'STARTING'}]}"), "ok: ");
}


#define CERT(until)  "{'ctl':{'now_ms':1000000000000},'certs':[{'file':'f',"   \
                     "'from_ms':1,'until_ms':" until "}]}"


static void
certificates_are_told_of_two_weeks_before(void **state)
{
    begins(says("certificates", CERT("1001209600000")), "ok: ");
    begins(says("certificates", CERT("1001209599999")),
           "warning: f expires in 14.0 days");
    begins(says("certificates", CERT("1000000000000")), "wrong: f expired");
    begins(says("certificates", "{'ctl':{'now_ms':5},'certs':[{'file':'f',"
                "'from_ms':6,'until_ms':3000000000000}]}"),
           "wrong: f is not valid yet");
    begins(says("certificates", "{'certs':[{'file':'f','is_key':true,"
                "'mode':384}]}"), "ok: ");
    begins(says("certificates", "{'certs':[{'file':'f','error':'no',"
                "'is_denied':true}]}"), "unchecked: f: no");
}


static void
disks_and_memory_have_their_last_part(void **state)
{
    begins(says("disk", "{'agent':{},'disks':[{'path':'/d',"
                "'free_permille':50}]}"), "ok: ");
    begins(says("disk", "{'agent':{},'disks':[{'path':'/d',"
                "'free_permille':49}]}"),
           "warning: the disk of /d has 4.9 % left");
    begins(says("disk", "{'agent':{},'disks':[{'path':'/d',"
                "'free_permille':9}]}"), "wrong: ");
    begins(says("disk", "{'agent':{'troubles':{'state':'no space'}},"
                "'disks':[]}"),
           "wrong: the agent cannot write its state: no space");
    begins(says("memory", "{'memory':[{'of':'nginx','limit':1000000,"
                "'available':50000}]}"), "ok: ");
    begins(says("memory", "{'memory':[{'of':'nginx','limit':1000000,"
                "'available':49949}]}"), "warning: nginx has ");
}


#define ZONE(slots)  "{'page':{'pools':[{'name':'llm','zone':{'slots':" slots  \
                     "},'replicas':[{},{},{}]}]}}"


static void
zones_have_room_for_twice_the_replicas(void **state)
{
    begins(says("zone", ZONE("6")), "ok: ");
    begins(says("zone", ZONE("5")), "warning: ");
    begins(says("zone", ZONE("3")), "warning: ");
    begins(says("zone", ZONE("2")), "wrong: the zone of upstream \"llm\" has "
           "room for 2 of 3 replicas");
}


static void
models_without_a_pool_are_told_once_for_each_upstream(void **state)
{
    begins(says("models", "{'page':{'pools':[{'name':'a'}]}}"), "ok: ");
    assert_string_equal(says("models", "{'page':{'pools':["
                             "{'name':'a','models_unrouted':2},"
                             "{'name':'a','models_unrouted':2},"
                             "{'name':'b','models_unrouted':0}]}}"),
                        "wrong: upstream \"a\" has fewer pools than models, "
                        "by 2: requests for the rest are refused");
    begins(says("models", "{'page':{'pools':[{'name':'a','model':'x',"
                "'replicas':[{'id':'r1','state':'ALIVE','models':['y'],"
                "'routable':false}]}]}}"),
           "wrong: replica \"r1\" serves \"y\"");
    begins(says("models", "{'page':{'pools':[{'name':'a','model':'x',"
                "'replicas':[{'id':'r1','state':'DEAD','models':['y'],"
                "'routable':false}]}]}}"), "ok: ");
}


#define CONF(of)  "{'conf':[{'name':'events','words':[],'at':'c:1','block':["  \
                  "{'name':'worker_connections','words':['100'],'at':'c:2'}"   \
                  "]}],'workers':[{'pid':1,'nofile':" of "},{'pid':2,"         \
                  "'nofile':" of "}],'page':{'pools':[{'queue':{'size':150},"  \
                  "'replicas':[{'max_capacity':46},{'max_capacity':0}]}]}}"


static void
connections_and_descriptors_are_counted(void **state)
{
    begins(says("descriptors", CONF("164")), "ok: ");
    begins(says("descriptors", CONF("163")), "warning: a worker may have 163");
    begins(says("connections", CONF("1")), "ok: ");
    begins(says("connections", "{'conf':[],'workers':{'why':'x'},"
                "'page':{'pools':[{'queue':{'size':513},'replicas':[]}]}}"),
           "warning: 1 workers take 512 clients, and 513 may run or wait");
}


static void
module_without_rights_is_unchecked(void **state)
{
    begins(says("module", "{'workers':[{'module_why':'for root'}]}"),
           "unchecked: for root");
    begins(says("module", "{'workers':[{'is_other_module':false}]}"), "ok: ");
    begins(says("module", "{'workers':[{'is_other_module':true,"
                "'module':'/m.so'}]}"), "wrong: /m.so is another file");
}


static void
page_that_is_for_others_is_unchecked(void **state)
{
    begins(says("gateway", "{'gateway':{'url':'u','status':403,"
                "'error':'x'}}"), "unchecked: the page at u is for others");
    begins(says("gateway", "{'gateway':{'url':'u','status':404,"
                "'error':'x'}}"), "wrong: ");
    begins(says("gateway", "{'gateway':{'url':'u'}}"), "ok: ");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(what_is_not_known_is_never_ok),
        cmocka_unit_test(clocks_have_two_thresholds),
        cmocka_unit_test(datagrams_are_judged_by_both_directions),
        cmocka_unit_test(keyring_is_needed_off_loopback_alone),
        cmocka_unit_test(members_are_named_by_what_is_wrong),
        cmocka_unit_test(certificates_are_told_of_two_weeks_before),
        cmocka_unit_test(disks_and_memory_have_their_last_part),
        cmocka_unit_test(zones_have_room_for_twice_the_replicas),
        cmocka_unit_test(
            models_without_a_pool_are_told_once_for_each_upstream),
        cmocka_unit_test(connections_and_descriptors_are_counted),
        cmocka_unit_test(module_without_rights_is_unchecked),
        cmocka_unit_test(page_that_is_for_others_is_unchecked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
