
#include "sim/work/slo.h"

#define SLO_MS  1e9     /* more is a mistake in the unit */


const work_yaml_field_t  work_slo_keys[] = {
    { "ttft_ms", WORK_YAML_DOUBLE, offsetof(work_slo_t, ttft_ms),
      0, SLO_MS, NULL, 0, 0 },
    { "itl_ms", WORK_YAML_DOUBLE, offsetof(work_slo_t, itl_ms),
      0, SLO_MS, NULL, 0, 0 },
    { "e2e_ms", WORK_YAML_DOUBLE, offsetof(work_slo_t, e2e_ms),
      0, SLO_MS, NULL, 0, 0 },
    { NULL, 0, 0, 0, 0, NULL, 0, 0 }
};
