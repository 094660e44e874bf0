
/* The targets of a class, as keys of YAML. */

#include "sim/work/slo.h"


#define SLO_MS  1e9     /* a greater time is a mistake */

#define SLO(key_, field)                                                      \
    { .key = key_, .kind = WORK_YAML_DOUBLE, .max = SLO_MS,                   \
      .offset = offsetof(work_slo_t, field) }

const work_yaml_field_t  work_slo_keys[] = {
    SLO("ttft_ms", ttft_ms),
    SLO("itl_ms", itl_ms),
    SLO("e2e_ms", e2e_ms),
    { .key = NULL }
};
