
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "ctl/doctor/gather_inner.h"
#include "ctl/link.h"


json_t *
gather_why(const char *format, ...)
{
    json_t   *text;
    va_list   args;

    va_start(args, format);
    text = json_vsprintf(format, args);
    va_end(args);

    return json_pack("{s:o}", "why",
                     text ? text : json_string("its name is not UTF-8"));
}


json_t *
gather_had(const json_t *facts, const char *name)
{
    json_t  *fact;

    fact = json_object_get(facts, name);

    return json_object_get(fact, "why") == NULL ? fact : NULL;
}


char *
gather_read(const char *path, size_t max, size_t *len)
{
    char    *text;
    FILE    *f;
    size_t   capacity;

    f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");

    if (f == NULL) {
        return NULL;
    }

    text = malloc(max + 1);

    if (text != NULL) {
        *len = fread(text, 1, max, f);
        text[*len] = '\0';
        capacity = *len + 1;
        text = realloc(text, capacity);
    }

    if (f != stdin) {
        fclose(f);
    }

    return text;
}


/* The error of a question that failed, without llmgwctl's name before it. */
static json_t *
gather_said(const char *said)
{
    json_t      *json;
    const char  *text;

    text = strncmp(said, "llmgwctl: ", 10) == 0 ? said + 10 : said;
    json = json_stringn(text, strcspn(text, "\n"));

    return json != NULL ? json : json_string("its path is not UTF-8");
}


/* Asks the agent.  NULL: *answer is its answer; otherwise what was wrong. */
static json_t *
gather_ask(const ctl_t *ctl, const char *cmd, json_t **answer)
{
    int      status;
    char    *said;
    ctl_t    asked;
    size_t   bytes;
    json_t  *error;

    asked = *ctl;
    asked.errors = open_memstream(&said, &bytes);

    if (asked.errors == NULL) {
        return json_string("out of memory");
    }

    status = ctl_link_ask(&asked, json_pack("{s:s}", "cmd", cmd), answer);
    fclose(asked.errors);
    error = status != CTL_DONE ? gather_said(said) : NULL;
    free(said);

    return error;
}


static void
gather_agent(const ctl_t *ctl, json_t *facts)
{
    json_t  *agent, *answer, *error;

    if (ctl->socket == NULL) {
        json_object_set_new(facts, "socket", gather_why(
            "there is not exactly one agent's socket in /run/llmgw, use -s "
            "PATH"));
        json_object_set_new(facts, "agent", gather_why("no agent was asked"));
        json_object_set_new(facts, "members",
                            gather_why("no agent was asked"));
        return;
    }

    error = gather_ask(ctl, "status", &agent);
    answer = NULL;

    if (error == NULL) {
        json_object_set_new(facts, "agent", agent);
        error = gather_ask(ctl, "members", &answer);
    }

    if (error != NULL) {
        json_object_set_new(facts, "agent",
                            gather_why("the agent does not answer"));
        json_object_set_new(facts, "members",
                            gather_why("the agent does not answer"));

    } else {
        json_object_set(facts, "members", json_object_get(answer, "members"));
        json_decref(answer);
    }

    json_object_set_new(facts, "socket", json_pack("{s:s, s:o}", "path",
                            ctl->socket, "error",
                            error ? error : json_string("")));
}


static json_int_t
gather_now_ms(void)
{
    struct timeval  now;

    gettimeofday(&now, NULL);

    return (json_int_t) now.tv_sec * 1000 + now.tv_usec / 1000;
}


json_t *
doctor_gather(const ctl_t *ctl)
{
    json_t  *facts;

    facts = json_pack("{s:{s:s, s:I}}", "ctl", "version", LLMGW_VERSION,
                      "now_ms", gather_now_ms());

    gather_agent(ctl, facts);
    json_object_set_new(facts, "conf", gather_conf(ctl));
    gather_net(ctl, facts);
    json_object_set_new(facts, "workers", gather_workers(facts));
    json_object_set_new(facts, "segment", gather_segments(facts));
    json_object_set_new(facts, "certs", gather_certs(facts));
    json_object_set_new(facts, "keys", gather_keys(facts));
    json_object_set_new(facts, "disks", gather_disks(facts));
    json_object_set_new(facts, "memory", gather_memory(facts));

    return facts;
}
