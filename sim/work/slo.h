
/*
 * Targets of an SLO class, as in a trace's header and a workload's
 * specification: "goodput_slo_targets", by the names of the classes.
 */

#ifndef WORK_SLO_H
#define WORK_SLO_H

#include "sim/work/yaml.h"


/* In ms; 0: no target. */
typedef struct {
    work_yaml_named_t  of;          /* of.name: the class's name */
    double             ttft_ms;
    double             itl_ms;
    double             e2e_ms;
} work_slo_t;

extern const work_yaml_field_t  work_slo_keys[];

#endif /* WORK_SLO_H */
