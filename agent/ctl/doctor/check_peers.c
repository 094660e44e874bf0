
/* Checks what was asked over the network: ports, replicas, engines. */

#include <stdlib.h>

#include "ctl/doctor/check_inner.h"


#define CHECK_HTTP_OK            200
#define CHECK_HTTP_UNAUTHORIZED  401
#define CHECK_HTTP_FORBIDDEN     403
#define CHECK_HTTP_UNAVAILABLE   503


static void
check_left_out(const json_t *list, doctor_report_t *report)
{
    size_t   i;
    json_t  *one;

    json_array_foreach(list, i, one) {
        if (json_object_get(one, "unasked") != NULL) {
            doctor_say(report, DOCTOR_UNCHECKED, NULL, "%"
                       JSON_INTEGER_FORMAT " members more were not asked",
                       ctl_number(one, "unasked"));
        }
    }
}


void
doctor_check_tcp(const json_t *facts, doctor_report_t *report)
{
    int          is_gossip;
    size_t       i;
    json_t      *port, *ports;

    ports = json_object_get(facts, "ports");

    json_array_foreach(ports, i, port) {

        if (ctl_text(port, "error")[0] == '\0') {
            continue;
        }

        is_gossip = strcmp(ctl_text(port, "of"), "gossip") == 0;
        doctor_say(report, DOCTOR_WRONG,
                   is_gossip ? "let TCP through to its gossip port: without it "
                   "one lost datagram makes a suspect"
                   : "start the replica, or let TCP through to its port",
                   "the %s port of \"%s\" at %s takes no connection: %s",
                   ctl_text(port, "of"), ctl_text(port, "id"),
                   ctl_text(port, "address"), ctl_text(port, "error"));
    }

    check_left_out(ports, report);
}


void
doctor_check_replicas(const json_t *facts, doctor_report_t *report)
{
    size_t       i;
    json_t      *replica;
    const char  *error;

    json_array_foreach(json_object_get(facts, "replicas"), i, replica) {
        error = ctl_text(replica, "error");

        if (json_is_false(json_object_get(replica, "was_asked"))) {
            doctor_say(report, DOCTOR_UNCHECKED, NULL, "replica \"%s\": %s",
                       ctl_text(replica, "id"), error);

        } else if (error[0] != '\0') {
            doctor_say(report, DOCTOR_WRONG,
                       "docs/tls.md says what each end needs: certificates of "
                       "one CA, that name the member's id",
                       "replica \"%s\" at %s: %s", ctl_text(replica, "id"),
                       ctl_text(replica, "address"), error);
        }
    }
}


static void
check_engine_models(const json_t *engine, const json_t *facts,
    doctor_report_t *report)
{
    size_t       i;
    json_t      *member;
    const char  *own, *model, *reported;

    own = ctl_text(json_object_get(facts, "agent"), "id");
    model = ctl_text(engine, "model");

    json_array_foreach(json_object_get(facts, "members"), i, member) {
        reported = json_string_value(json_array_get(json_object_get(member,
                                                    "models"), 0));

        if (strcmp(ctl_text(member, "id"), own) == 0 && reported != NULL
            && model[0] != '\0' && strcmp(model, reported) != 0)
        {
            doctor_say(report, DOCTOR_WRONG,
                       "give the adapter this engine's URL, or the engine its "
                       "model",
                       "the engine at %s serves \"%s\", and replica \"%s\" "
                       "reports \"%s\"", ctl_text(engine, "url"), model, own,
                       reported);
        }
    }
}


static void
check_engine_metrics(const json_t *engine, doctor_report_t *report)
{
    json_int_t  status;

    status = ctl_number(engine, "metrics_status");

    if (status != CHECK_HTTP_OK
        || !json_is_true(json_object_get(engine, "has_metrics")))
    {
        doctor_say(report, DOCTOR_WARNING,
                   "start SGLang with --enable-metrics, llama-server with "
                   "--metrics: without them a hung engine is found late",
                   "the engine at %s has no metrics (/metrics: %"
                   JSON_INTEGER_FORMAT ")", ctl_text(engine, "url"), status);
    }
}


static void
check_engine(const json_t *engine, const json_t *facts,
    doctor_report_t *report)
{
    json_int_t   status;
    const char  *url;

    url = ctl_text(engine, "url");
    status = ctl_number(engine, "status");

    if (json_is_true(json_object_get(engine, "is_silent"))) {
        doctor_say(report, DOCTOR_WRONG,
                   "it hangs: look at its log, and start it again",
                   "the engine at %s takes connections and does not answer",
                   url);

    } else if (ctl_text(engine, "error")[0] != '\0') {
        doctor_say(report, DOCTOR_WRONG,
                   "start it, or give the adapter the right --engine-url",
                   "the engine at %s is not reached: %s", url,
                   ctl_text(engine, "error"));

    } else if (status == CHECK_HTTP_UNAUTHORIZED
               || status == CHECK_HTTP_FORBIDDEN)
    {
        doctor_say(report, DOCTOR_WRONG,
                   "give the adapter, and this command, --engine-key-file with "
                   "the engine's key",
                   "the engine at %s asks for a key (%" JSON_INTEGER_FORMAT
                   ")", url, status);

    } else if (status == CHECK_HTTP_UNAVAILABLE) {
        doctor_say(report, DOCTOR_WARNING, "wait for it",
                   "the engine at %s still loads (503)", url);

    } else if (status != CHECK_HTTP_OK) {
        doctor_say(report, DOCTOR_WRONG,
                   "give the URL of a server with OpenAI's API, without a path",
                   "the engine at %s answers /v1/models with %"
                   JSON_INTEGER_FORMAT, url, status);

    } else {
        check_engine_models(engine, facts, report);
        check_engine_metrics(engine, report);
    }
}


void
doctor_check_engines(const json_t *facts, doctor_report_t *report)
{
    size_t   i;
    json_t  *engine;

    json_array_foreach(json_object_get(facts, "engines"), i, engine) {
        check_engine(engine, facts, report);
    }
}


/* The first engine with the same model as this one, which may be this one. */
static json_t *
engine_like(json_t *engines, const json_t *engine)
{
    size_t   i;
    json_t  *other;

    json_array_foreach(engines, i, other) {
        if (strcmp(ctl_text(other, "model"), ctl_text(engine, "model")) == 0) {
            return other;
        }
    }

    return NULL;
}


/*
 * 1: a pool serves the model.  If there are several models, gateways have a
 * pool for each.
 */
static int
model_has_pool(const json_t *facts, const char *model)
{
    size_t   i;
    json_t  *pool;

    json_array_foreach(json_object_get(json_object_get(facts, "page"),
                                       "pools"), i, pool)
    {
        if (strcmp(ctl_text(pool, "model"), model) == 0) {
            return 1;
        }
    }

    return 0;
}


static void
check_neighbour(const json_t *facts, const json_t *engine, const json_t *first,
    const json_t *like, doctor_report_t *report)
{
    const char  *model, *of_first;

    model = ctl_text(engine, "model");
    of_first = ctl_text(first, "model");

    if (like == engine && of_first[0] != '\0' && strcmp(model, of_first) != 0
        && !model_has_pool(facts, model))
    {
        doctor_say(report, DOCTOR_WARNING,
                   "see whether that is meant: a gateway serves both, each by "
                   "its name",
                   "the engine at %s serves \"%s\", and its neighbour at "
                   "%s \"%s\"", ctl_text(engine, "url"), model,
                   ctl_text(first, "url"), of_first);
    }

    if (ctl_number(engine, "context") != ctl_number(like, "context")) {
        doctor_say(report, DOCTOR_WRONG,
                   "start both with one context (--max-model-len, "
                   "--context-length, --ctx-size): a prompt that one takes "
                   "the other refuses",
                   "the engine at %s has a context of %" JSON_INTEGER_FORMAT
                   " tokens, and its neighbour at %s one of %"
                   JSON_INTEGER_FORMAT, ctl_text(engine, "url"),
                   ctl_number(engine, "context"), ctl_text(like, "url"),
                   ctl_number(like, "context"));
    }
}


void
doctor_check_context(const json_t *facts, doctor_report_t *report)
{
    size_t   i;
    json_t  *engine, *engines;

    engines = json_object_get(facts, "engines");

    json_array_foreach(engines, i, engine) {
        if (ctl_text(engine, "model")[0] != '\0') {
            check_neighbour(facts, engine, json_array_get(engines, 0),
                            engine_like(engines, engine), report);
        }
    }
}
