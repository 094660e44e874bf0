
/*
 * llmgw-replica: the kinds of engines that it serves, by the name of --engine,
 * and which options each takes.
 */

#ifndef KINDS_H
#define KINDS_H

#include "replica/cmdline.h"


extern const cmdline_program_t  kinds_program;

#endif /* KINDS_H */
