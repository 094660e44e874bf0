
/*
 * Traces and specifications of workloads from untrusted files: the first byte
 * chooses the reader, and from what it has read a workload is made.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/work/session.h"
#include "sim/work/spec/spec.h"
#include "sim/work/trace/trace.h"

#define COLUMNS                                                              \
    "request_id,client_id,tenant_id,slo_class,session_id,round_index,"       \
    "prefix_group,prefix_length,streaming,input_tokens,output_tokens,"       \
    "text_tokens,image_tokens,audio_tokens,video_tokens,reason_ratio,model," \
    "deadline_us,server_input_tokens,arrival_time_us,send_time_us,"          \
    "first_chunk_time_us,last_chunk_time_us,num_chunks,status,"              \
    "error_message,finish_reason\n"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


/* An error is one line, and begins with the place of the fault. */
static void
check(int rc, const work_error_t *error)
{
    if (rc != 0 && (strchr(error->text, '\n') != NULL
                    || strncmp(error->text, "f:", 2) != 0))
    {
        abort();
    }
}


static void
replay(const work_trace_t *trace, work_replay_t mode)
{
    size_t                  i;
    work_t                  work;
    work_error_t            error;
    work_replay_options_t   options;

    memset(&options, 0, sizeof(options));
    options.mode = mode;
    work_init(&work);

    if (work_from_trace(&work, trace, &options, &error) == 0) {
        for (i = 0; i < work.n && i < 100; i++) {
            work_followup(&work, work_at(&work, i), WORK_END_COMPLETED, 1,
                          1000);
        }
    }

    work_done(&work);
}


/* with_columns: the data is put behind a header and one valid row. */
static void
fuzz_data(const uint8_t *data, size_t size, int with_columns)
{
    int            rc;
    char          *bytes;
    size_t         head;
    work_trace_t   trace;
    work_error_t   error;

    head = with_columns ? strlen(COLUMNS) : 0;
    bytes = malloc(head + size + 1);
    memcpy(bytes, COLUMNS, head);
    memcpy(bytes + head, data, size);

    work_trace_init(&trace);
    rc = work_trace_read_data(&trace, "f", bytes, head + size, &error);
    check(rc, &error);

    if (rc == 0) {
        replay(&trace, WORK_REPLAY_FIXED);
        replay(&trace, WORK_REPLAY_CLOSED_LOOP);
    }

    work_trace_done(&trace);
    free(bytes);
}


static void
fuzz_header(const uint8_t *data, size_t size)
{
    work_trace_t  trace;
    work_error_t  error;

    work_trace_init(&trace);
    check(work_trace_read_header(&trace, "f", (const char *) data, size,
                                 &error), &error);
    work_trace_done(&trace);
}


static void
fuzz_spec(const uint8_t *data, size_t size)
{
    int            rc;
    work_t         work;
    work_spec_t    spec;
    work_arena_t   arena;
    work_error_t   error;

    memset(&arena, 0, sizeof(arena));
    memset(&spec, 0, sizeof(spec));
    work_init(&work);
    rc = work_spec_parse(&spec, "f", (const char *) data, size, &arena,
                         &error);
    check(rc, &error);

    if (rc == 0) {
        check(work_generate(&work, &spec, 50, 0, &error), &error);
    }

    work_done(&work);
    work_arena_done(&arena);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }

    switch (data[0] % 4) {

    case 0:
        fuzz_data(data + 1, size - 1, 1);
        break;

    case 1:
        fuzz_data(data + 1, size - 1, 0);
        break;

    case 2:
        fuzz_header(data + 1, size - 1);
        break;

    default:
        fuzz_spec(data + 1, size - 1);
    }

    return 0;
}
