
/* A tensor on the wire: chunks, both dtypes, and what does not fit. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "replica/shard/reason.h"
#include "replica/shard/tensor.h"


static void
what_the_wire_cannot_hold_does_not_fit(void **state)
{
    float  row[5] = { 0, -65519.996f, 1, 1e-40f, 65504 };

    assert_true(tensor_fits(row, 5, TENSOR_FP16));
    row[4] = -65520;
    assert_false(tensor_fits(row, 5, TENSOR_FP16));
    assert_true(tensor_fits(row, 5, TENSOR_FP32));
    assert_true(tensor_fits(row, 4, TENSOR_FP16));
    row[2] = INFINITY;
    assert_false(tensor_fits(row, 5, TENSOR_FP32));
    row[2] = NAN;
    assert_false(tensor_fits(row, 5, TENSOR_FP32));
    assert_true(tensor_fits(row, 0, TENSOR_FP32));
}


static void
the_number_of_chunks_follows_from_the_shape(void **state)
{
    uint64_t  bytes;

    assert_int_equal(tensor_chunks(0), 0);
    assert_int_equal(tensor_chunks(1), 1);
    assert_int_equal(tensor_chunks(SHARD_CHUNK_BYTES), 1);
    assert_int_equal(tensor_chunks(SHARD_CHUNK_BYTES + 1), 2);

    bytes = tensor_bytes(SHARD_ROWS_MAX, 8192, TENSOR_FP32);
    assert_int_equal(bytes, SHARD_CHUNK_BYTES);
    assert_int_equal(tensor_bytes(SHARD_ROWS_MAX, 8192, TENSOR_FP16),
                     SHARD_CHUNK_BYTES / 2);
    assert_int_equal(tensor_bytes(SHARD_ROWS_MAX, 512 * 1024, TENSOR_FP32),
                     SHARD_TENSOR_BYTES);
    assert_true(tensor_bytes(UINT32_MAX, UINT32_MAX, TENSOR_FP32)
                > SHARD_TENSOR_BYTES);

    bytes = SHARD_CHUNK_BYTES + 12;
    assert_int_equal(tensor_chunk_bytes(bytes, 0), SHARD_CHUNK_BYTES);
    assert_int_equal(tensor_chunk_bytes(bytes, 1), 12);
}


static void
a_tensor_survives_its_chunks(tensor_dtype_t dtype)
{
    float     *from, *to;
    size_t     i, count;
    uint8_t   *wire;
    uint32_t   chunk;
    uint64_t   bytes;

    count = 31 * 12289;                     /* no multiple of a chunk */
    bytes = tensor_bytes(31, 12289, dtype);
    from = test_malloc(count * sizeof(float));
    to = test_calloc(count, sizeof(float));
    wire = test_malloc(SHARD_CHUNK_BYTES);

    for (i = 0; i < count; i++) {
        from[i] = (float) (i % 4097) - 2048;
    }

    for (chunk = 0; chunk < tensor_chunks(bytes); chunk++) {
        tensor_write(wire, from, bytes, chunk, dtype);
        tensor_read(to, wire, bytes, chunk, dtype);
    }

    assert_memory_equal(from, to, count * sizeof(float));
    test_free(from);
    test_free(to);
    test_free(wire);
}


static void
a_tensor_comes_out_as_it_went_in(void **state)
{
    a_tensor_survives_its_chunks(TENSOR_FP32);
    a_tensor_survives_its_chunks(TENSOR_FP16);
}


static void
each_reason_is_read_as_it_is_written(void **state)
{
    int          reason;
    const char  *name;

    for (reason = 1; reason < SHARD_REASONS_COUNT; reason++) {
        name = shard_reason_name(reason);
        assert_int_equal(shard_reason_parse(name, strlen(name)), reason);
        assert_int_not_equal(shard_reason_status(reason), LLMGW_GRPC_OK);
    }

    assert_int_equal(shard_reason_parse("", 0), SHARD_FAILED);
    assert_int_equal(shard_reason_parse("shard_ful", 9), SHARD_FAILED);
    assert_string_equal(shard_reason_name(SHARD_OK), "");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(what_the_wire_cannot_hold_does_not_fit),
        cmocka_unit_test(the_number_of_chunks_follows_from_the_shape),
        cmocka_unit_test(a_tensor_comes_out_as_it_went_in),
        cmocka_unit_test(each_reason_is_read_as_it_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
