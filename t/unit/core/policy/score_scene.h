
/* Candidates and scores for the tests of scorers and policies. */

#ifndef SCORE_SCENE_H
#define SCORE_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/policy/rank.h"


#define SCENE_MAX  8

/* The table of scorers that a test names. */
#ifndef SCENE_SCORERS
#define SCENE_SCORERS  llmgw_scorers
#endif

typedef struct {
    llmgw_candidate_t  candidates[SCENE_MAX];
    llmgw_scoring_t    scoring;
    uint32_t           matched[SCENE_MAX];
    uint64_t           cold[64];
    double             scores[SCENE_MAX];
    double             more[SCENE_MAX];
} score_scene_t;


/* Candidates are replicas 0 to n - 1. */
static inline void
score_scene_init(score_scene_t *scene, uint32_t n)
{
    uint32_t  i;

    memset(scene, 0, sizeof(*scene));
    assert_true(llmgw_cold_bytes(SCENE_MAX) <= sizeof(scene->cold));

    scene->scoring.candidates = scene->candidates;
    scene->scoring.n = n;
    scene->scoring.matched = scene->matched;
    scene->scoring.cold = llmgw_cold_init(scene->cold, SCENE_MAX);

    for (i = 0; i < n; i++) {
        scene->candidates[i].replica = i;
    }
}


static inline const double *
score_scene_run(score_scene_t *scene, const char *name)
{
    const llmgw_scorer_t  *scorer;

    scorer = llmgw_scorer_find(SCENE_SCORERS, name, strlen(name));
    assert_non_null(scorer);
    scorer->score(&scene->scoring, scene->scores);

    return scene->scores;
}


/* Compares each score, bit by bit. */
#define assert_scores(scene, name, ...)                                       \
    do {                                                                      \
        const double  want_[] = { __VA_ARGS__ };                              \
        assert_int_equal((scene)->scoring.n,                                  \
                         sizeof(want_) / sizeof(want_[0]));                   \
        assert_memory_equal(score_scene_run(scene, name), want_,              \
                            sizeof(want_));                                   \
    } while (0)

#endif /* SCORE_SCENE_H */
