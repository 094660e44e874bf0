
/* Weighted scorers.  weighted.h has the formula. */

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/name.h"
#include "core/policy/weighted.h"


#define NUMBER_BYTES  64        /* of a weight as written */

typedef struct {
    const char  *at;
    size_t       len;
} span_t;

typedef struct {
    llmgw_weighted_t              weighted;
    const llmgw_scorer_t *const  *scorers;
    char                         *error;
    size_t                        error_size;
} parse_t;

static const struct {
    const char  *name;
    const char  *text;
} profiles[] = {
    { "default", "prefix-affinity:1,active-requests:1" },
    { "blis", "prefix-affinity:3,queue-depth:2,kv-utilization:2" },
    { "llm-d", "precise-prefix-cache:2,queue-depth:1,kv-utilization:1" }
};


static int __attribute__((format(printf, 2, 3)))
parse_fails(parse_t *parse, const char *format, ...)
{
    va_list  args;

    va_start(args, format);
    (void) vsnprintf(parse->error, parse->error_size, format, args);
    va_end(args);

    return -1;
}


static span_t
span_trim(span_t span)
{
    while (span.len != 0 && span.at[0] == ' ') {
        span.at++;
        span.len--;
    }

    while (span.len != 0 && span.at[span.len - 1] == ' ') {
        span.len--;
    }

    return span;
}


/* Takes the text before `end` off the front of *rest, and `end` with it. */
static span_t
span_take(span_t *rest, char end)
{
    span_t       span;
    const char  *p;

    p = memchr(rest->at, end, rest->len);
    span.at = rest->at;
    span.len = p == NULL ? rest->len : (size_t) (p - rest->at);

    rest->at += p == NULL ? span.len : span.len + 1;
    rest->len -= p == NULL ? span.len : span.len + 1;

    return span_trim(span);
}


static int
parse_number(span_t text, double *number)
{
    char  *end, buffer[NUMBER_BYTES];

    if (text.len == 0 || text.len >= sizeof(buffer)) {
        return -1;
    }

    memcpy(buffer, text.at, text.len);
    buffer[text.len] = '\0';

    *number = strtod(buffer, &end);

    return end == buffer + text.len ? 0 : -1;
}


static int
parse_weight(parse_t *parse, span_t part)
{
    span_t                 name, rest;
    uint32_t               i;
    double                 given;
    llmgw_weighted_t      *weighted;
    const llmgw_scorer_t  *scorer;

    weighted = &parse->weighted;
    rest = part;

    if (part.len == 0 || memchr(part.at, ':', part.len) == NULL) {
        return parse_fails(parse, "\"%.*s\" is not NAME:WEIGHT",
                           (int) part.len, part.at);
    }

    name = span_take(&rest, ':');
    rest = span_trim(rest);
    scorer = llmgw_scorer_find(parse->scorers, name.at, name.len);

    if (scorer == NULL) {
        return parse_fails(parse, "unknown scorer \"%.*s\"", (int) name.len,
                           name.at);
    }

    for (i = 0; i < weighted->n; i++) {
        if (weighted->weights[i].scorer == scorer) {
            return parse_fails(parse, "scorer \"%s\" is named twice",
                               scorer->name);
        }
    }

    if (parse_number(rest, &given) != 0 || !isfinite(given) || given <= 0) {
        return parse_fails(parse, "weight \"%.*s\" of scorer \"%s\" is not a "
                           "finite number above 0", (int) rest.len, rest.at,
                           scorer->name);
    }

    weighted->needs |= scorer->needs;
    weighted->weights[weighted->n].scorer = scorer;
    weighted->weights[weighted->n++].given = given;

    return 0;
}


static int
parse_shares(parse_t *parse)
{
    double             sum;
    uint32_t           i;
    llmgw_weighted_t  *weighted;

    sum = 0;
    weighted = &parse->weighted;

    for (i = 0; i < weighted->n; i++) {
        sum += weighted->weights[i].given;
    }

    if (!isfinite(sum)) {
        return parse_fails(parse, "the sum of the weights is not finite");
    }

    for (i = 0; i < weighted->n; i++) {
        weighted->weights[i].share = weighted->weights[i].given / sum;
    }

    return 0;
}


int
llmgw_weighted_parse(llmgw_weighted_t *weighted,
    const llmgw_scorer_t *const *scorers, const char *text, size_t len,
    char *error, size_t error_size)
{
    int      more;
    size_t   i;
    span_t   rest;
    parse_t  parse = { .scorers = scorers, .error = error,
                       .error_size = error_size };

    rest.at = text;
    rest.len = len;

    for (i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        if (llmgw_name_is(profiles[i].name, text, len)) {
            rest.at = profiles[i].text;
            rest.len = strlen(profiles[i].text);
        }
    }

    do {
        more = memchr(rest.at, ',', rest.len) != NULL;

        if (parse_weight(&parse, span_take(&rest, ',')) != 0) {
            return -1;
        }
    } while (more);

    if (parse_shares(&parse) != 0) {
        return -1;
    }

    *weighted = parse.weighted;

    return 0;
}


void
llmgw_weighted_rank(const llmgw_weighted_t *weighted,
    const llmgw_scoring_t *scoring, double *ranks, double *scores)
{
    double    score, share;
    uint32_t  i, k;

    for (i = 0; i < scoring->n; i++) {
        ranks[i] = 0;
    }

    for (k = 0; k < weighted->n; k++) {
        weighted->weights[k].scorer->score(scoring, scores);
        share = weighted->weights[k].share;

        for (i = 0; i < scoring->n; i++) {
            score = scores[i] < 0 ? 0 : scores[i];
            score = score > 1 ? 1 : score;

            ranks[i] += score * share;
        }
    }
}
