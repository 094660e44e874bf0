
#include "replica/shard/check.h"
#include "replica/shard/tensor.h"


static double
check_square(const float *row, uint32_t width)
{
    double    sum;
    uint32_t  i;

    sum = 0;
    for (i = 0; i < width; i++) {
        sum += (double) row[i] * row[i];
    }

    return sum;
}


check_t
check_rows(const float *rows, uint32_t n, uint32_t width, uint32_t position,
    float norm)
{
    double    bound;
    uint32_t  i;

    if (!tensor_fits(rows, (size_t) n * width, TENSOR_FP32)) {
        return CHECK_NOT_FINITE;
    }

    bound = norm * CHECK_NORM_FACTOR;
    bound *= bound;

    for (i = 0; norm > 0 && i < n; i++) {
        if (position + i >= CHECK_NORM_FROM
            && check_square(rows + (size_t) i * width, width) > bound)
        {
            return CHECK_TOO_LONG;
        }
    }

    return CHECK_GOOD;
}


const char *
check_text(check_t check)
{
    switch (check) {
    case CHECK_NOT_FINITE:
        return "a value that is no finite number";
    case CHECK_TOO_LONG:
        return "a row far longer than any that the model gave";
    default:
        return "";
    }
}
