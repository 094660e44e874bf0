
/*
 * llmgwctl doctor: what is wrong on this host, and what to do.
 *
 * Facts are gathered (gather.h), checks judge them (check.h), and their reports
 * are printed here, one line each, which ends with what to do.  The doctor
 * changes nothing, so it may be run at any time, as any user; what it may not
 * see is reported as unchecked.
 */

#include <stddef.h>
#include <stdio.h>

#include "ctl/doctor/check.h"
#include "ctl/doctor/gather.h"
#include "ctl/field.h"


static const option_t  doctor_table[] = {
    { .name = "nginx-conf", .kind = OPTION_STRING, .metavar = "FILE",
      .offset = offsetof(ctl_options_t, nginx_conf),
      .help = "what nginx -T prints; -: standard input; else run it" },
    { .name = "gateway", .kind = OPTION_STRING, .metavar = "URL",
      .offset = offsetof(ctl_options_t, gateway),
      .help = "the status page; else as nginx's configuration says" },
    { .name = "engine-url", .kind = OPTION_STRING, .metavar = "URL[,URL]",
      .offset = offsetof(ctl_options_t, engine_urls),
      .help = "engines to ask; else that of the adapter here" },
    { .name = "engine-key-file", .kind = OPTION_STRING, .metavar = "FILE",
      .offset = offsetof(ctl_options_t, engine_key_file),
      .help = "the key that they ask for" },
    { .name = "engine-ca-file", .kind = OPTION_STRING, .metavar = "FILE",
      .offset = offsetof(ctl_options_t, engine_ca_file),
      .help = "CA certificates of theirs; else the system's" },
    { .name = NULL }
};

const options_spec_t  ctl_doctor_spec = {
    .program = "llmgwctl doctor",
    .synopsis = "[options]",
    .summary = "Looks at this host's agent, nginx and engines, and at its way "
               "to the other\nmembers.  It changes nothing.  docs/doctor.md "
               "has what each line means.",
    .epilogue = "exit status: 0 all that was checked is ok, 1 something is "
                "wrong,\n             7 there are warnings",
    .table = doctor_table
};


static void
doctor_print(const ctl_t *ctl, const doctor_report_t *report)
{
    size_t       i;
    json_t      *line;
    const char  *level, *remedy, *colour;

    json_array_foreach(report->lines, i, line) {
        level = ctl_text(line, "level");
        remedy = ctl_text(line, "do");
        colour = !ctl->has_colours ? ""
                 : level[0] == 'o' ? "\033[32m"
                 : level[0] == 'u' ? "\033[2m"
                 : level[1] == 'a' ? "\033[33m" : "\033[31m";

        printf("%s%-9s%s  %-12s  %s%s%s\n", colour, level,
               colour[0] != '\0' ? "\033[0m" : "", ctl_text(line, "check"),
               ctl_text(line, "text"), remedy[0] != '\0' ? "; " : "", remedy);
    }

    printf("%u ok, %u warnings, %u wrong, %u unchecked\n",
           report->n[DOCTOR_OK], report->n[DOCTOR_WARNING],
           report->n[DOCTOR_WRONG], report->n[DOCTOR_UNCHECKED]);
}


static void
doctor_print_json(const doctor_report_t *report)
{
    json_t  *json;

    json = json_pack("{s:i, s:i, s:i, s:i, s:O}",
                     "ok", (int) report->n[DOCTOR_OK],
                     "warnings", (int) report->n[DOCTOR_WARNING],
                     "wrong", (int) report->n[DOCTOR_WRONG],
                     "unchecked", (int) report->n[DOCTOR_UNCHECKED],
                     "lines", report->lines);
    ctl_print_json(json);
    json_decref(json);
}


int
ctl_doctor(const ctl_t *ctl)
{
    json_t           *facts;
    doctor_report_t   report = { .lines = json_array() };

    facts = doctor_gather(ctl);
    doctor_check(facts, &report);
    json_decref(facts);

    if (ctl->is_json) {
        doctor_print_json(&report);

    } else {
        doctor_print(ctl, &report);
    }

    json_decref(report.lines);

    return report.n[DOCTOR_WRONG] > 0 ? CTL_FAILED
           : report.n[DOCTOR_WARNING] > 0 ? CTL_WARNED : CTL_DONE;
}
