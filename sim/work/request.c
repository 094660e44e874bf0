
/* Requests in pages that stay where they are, and hashes of their blocks. */

#include "sim/work/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Mixed into origins to keep their kinds apart; any three odd numbers will do.
 */
#define ORIGIN_PREFIX   0x9e3779b97f4a7c15ULL
#define ORIGIN_REQUEST  0xc2b2ae3d27d4eb4fULL
#define ORIGIN_SESSION  0x165667b19e3779f9ULL


void
work_init(work_t *work)
{
    memset(work, 0, sizeof(*work));
    work_names_init(&work->names);
}


void
work_done(work_t *work)
{
    size_t  i;

    for (i = 0; i < work->npages; i++) {
        free(work->pages[i]);
    }

    free(work->pages);
    work_names_done(&work->names);
    work_arena_done(&work->arena);
    memset(work, 0, sizeof(*work));
}


static void
work_add_page(work_t *work)
{
    work_grow(&work->pages, &work->max_pages, work->npages + 1,
              sizeof(work->pages[0]));
    work->pages[work->npages] = calloc(WORK_PAGE, sizeof(work_request_t));

    if (work->pages[work->npages++] == NULL) {
        work_no_memory();
    }
}


work_request_t *
work_add(work_t *work)
{
    work_request_t     *r;
    const work_name_t  *none;

    if (work->n == work->npages * WORK_PAGE) {
        work_add_page(work);
    }

    r = work_at(work, work->n);
    r->index = (uint32_t) work->n++;

    none = work_name(&work->names, "", 0);
    r->client = r->tenant = r->slo_class = r->model = none;
    r->session = r->prefix_group = r->adapter = none;
    r->id = "";

    return r;
}


void
work_set_id(work_t *work, work_request_t *r, int64_t number)
{
    int   len;
    char  text[40];

    len = snprintf(text, sizeof(text), "request_%lld", (long long) number);
    r->id = work_arena_text(&work->arena, text, (size_t) len);
}


/*
 * The last step of splitmix64: a bijection, so different inputs never collide.
 */
static uint64_t
mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;

    return z ^ (z >> 31);
}


void
work_set_origin(work_request_t *r, int accumulates)
{
    r->prefix_origin = mix(ORIGIN_PREFIX + r->prefix_group->id);
    r->kept_tokens = r->input_tokens
                     + (r->output_tokens > 0 ? r->output_tokens - 1 : 0);

    if (accumulates && r->session->len > 0) {
        r->body_origin = mix(ORIGIN_SESSION + r->session->id);

    } else {
        r->body_origin = mix(ORIGIN_REQUEST + r->index);
    }
}


uint64_t
work_block_hash(const work_request_t *r, uint32_t block_tokens, uint32_t b)
{
    uint64_t  end, origin;

    end = (uint64_t) block_tokens * (b + 1ULL);
    origin = end <= r->prefix_tokens ? r->prefix_origin
             : end <= r->kept_tokens ? r->body_origin
             : mix(ORIGIN_REQUEST + r->index);

    return mix(origin + b * 0x9e3779b97f4a7c15ULL);
}


uint32_t
work_block_hashes(const work_request_t *r, uint32_t block_tokens,
    uint64_t *hashes, uint32_t max)
{
    uint32_t  b, n;

    n = r->input_tokens / block_tokens;
    n = n < max ? n : max;

    for (b = 0; b < n; b++) {
        hashes[b] = work_block_hash(r, block_tokens, b);
    }

    return n;
}
