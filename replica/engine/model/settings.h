
/* Makes the settings of a replica model from the command line's options. */

#ifndef MODEL_SETTINGS_H
#define MODEL_SETTINGS_H

#include "replica/engine/model/model.h"
#include "sim/model/config.h"


/* 0, or -1 and one line in error. */
int model_settings_read(const model_options_t *options,
    model_config_t *config, char *error, size_t bytes);

#endif /* MODEL_SETTINGS_H */
