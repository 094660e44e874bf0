
/* The values that an option accepts, by kind: options.c's own half. */

#ifndef OPTION_VALUE_H
#define OPTION_VALUE_H

#include "common/options.h"


/* Sets the field from text.  0; or -1: refused, and the field is unchanged. */
int option_value_store(const option_t *o, void *field, const char *value);

/* Describes the accepted values, for the end of an error. */
void option_value_expected(const option_t *o, char *buf, size_t capacity);

#endif /* OPTION_VALUE_H */
