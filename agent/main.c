
/* llmgw-agent: the command line. */

#include <stdio.h>

#include "agent/agent.h"


static void
main_warn_if_exposed(const settings_t *settings, const log_t *log)
{
    if (!settings_is_exposed(settings)) {
        return;
    }

    if (settings->keyring == NULL) {
        log_write(log, LOG_WARN,
                  "gossip of cluster \"%s\" on %s is not encrypted: any "
                  "host that reaches that port can speak for any member",
                  settings->cluster, settings->advertised);

    } else if (settings_has_default_cluster(settings)) {
        log_write(log, LOG_WARN,
                  "cluster on %s has the default name: another such cluster "
                  "with the same key would merge with it",
                  settings->advertised);
    }
}


static int
main_serve(const settings_t *settings)
{
    int       status;
    char      error[AGENT_ERROR_BYTES];
    log_t     log = { "llmgw-agent", settings->id, LOG_INFO };
    agent_t  *agent;

    main_warn_if_exposed(settings, &log);

    agent = agent_create(settings, &log, error);

    if (agent == NULL) {
        log_write(&log, LOG_ERROR, "%s", error);
        return 1;
    }

    status = agent_run(agent);
    agent_destroy(agent);

    return status;
}


int
main(int argc, char **argv)
{
    int           rest, status;
    char          error[SETTINGS_ERROR_BYTES];
    settings_t    settings = { 0 };

    switch (options_parse(&settings_spec, &settings, argc, argv, 1, &rest)) {
    case OPTIONS_EXIT:
        return 0;
    case OPTIONS_EUSAGE:
        return 2;
    default:
        break;
    }

    if (settings_set_command(&settings, argc, argv, rest, error) != 0
        || settings_complete(&settings, error) != 0)
    {
        fprintf(stderr, "llmgw-agent: %s\n", error);
        status = 2;

    } else {
        status = settings.is_check ? 0 : main_serve(&settings);
    }

    options_done(&settings_spec, &settings);

    return status;
}
