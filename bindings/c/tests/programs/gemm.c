/* Multiplies integer matrices in every type and transposition; sums are exact in any order. */
#include <string.h>

#include "acl/ops/acl_cblas.h"
#include "check.h"

#define M 3
#define N 4
#define K 5
#define WITHOUT_GAPS (-1)

static int number(int i)
{
    /* Small enough for exact sums in float16. */
    return (i * 7 + 3) % 9 - 4;
}

static void put(void *to, aclDataType type, int i, int value)
{
    switch (type) {
    case ACL_FLOAT:
        ((float *)to)[i] = (float)value;
        break;
    case ACL_FLOAT16:
        ((aclFloat16 *)to)[i] = aclFloatToFloat16((float)value);
        break;
    case ACL_INT8:
        ((int8_t *)to)[i] = (int8_t)value;
        break;
    default:
        ((int32_t *)to)[i] = value;
    }
}

static int get(const void *from, aclDataType type, int i)
{
    switch (type) {
    case ACL_FLOAT:
        return (int)((const float *)from)[i];
    case ACL_FLOAT16:
        return (int)aclFloat16ToFloat(((const aclFloat16 *)from)[i]);
    default:
        return ((const int32_t *)from)[i];
    }
}

/* Row-major matrices; transposed ones have their dimensions swapped. */
static int at(int row, int column, int n_rows, int n_columns, aclTransType trans)
{
    return trans == ACL_TRANS_T ? column * n_rows + row : row * n_columns + column;
}

static int expected(aclTransType trans_a, aclTransType trans_b, int i, int j)
{
    int sum = 0;
    for (int k = 0; k < K; k++) {
        sum += number(at(i, k, M, K, trans_a)) * number(100 + at(k, j, K, N, trans_b));
    }
    return 3 * sum - 2 * number(200 + i * N + j);
}

static void product(aclDataType type, aclDataType sum, aclTransType trans_a, aclTransType trans_b, int uses_handle)
{
    int32_t a[M * K];
    int32_t b[K * N];
    int32_t c[M * N];
    int32_t alpha = 0;
    int32_t beta = 0;
    put(&alpha, sum, 0, 3);
    put(&beta, sum, 0, -2);
    for (int i = 0; i < M * K; i++) {
        put(a, type, i, number(i));
    }
    for (int i = 0; i < K * N; i++) {
        put(b, type, i, number(100 + i));
    }
    for (int i = 0; i < M * N; i++) {
        put(c, sum, i, number(200 + i));
    }
    if (uses_handle) {
        aclopHandle *handle = NULL;
        aclDataBuffer *buffers[5];
        void *addresses[5] = {a, b, c, &alpha, &beta};
        size_t sizes[5] = {sizeof a, sizeof b, sizeof c, sizeof alpha, sizeof beta};
        MUST(aclblasCreateHandleForGemmEx(trans_a, trans_b, ACL_TRANS_N, M, N, K, type, type, sum,
                                          ACL_COMPUTE_HIGH_PRECISION, &handle));
        for (int i = 0; i < 5; i++) {
            buffers[i] = aclCreateDataBuffer(addresses[i], sizes[i]);
        }
        MUST(aclopExecWithHandle(handle, 5, (const aclDataBuffer *const *)buffers, 1, &buffers[2], NULL));
        for (int i = 0; i < 5; i++) {
            MUST(aclDestroyDataBuffer(buffers[i]));
        }
        aclopDestroyHandle(handle);
    } else {
        MUST(aclblasGemmEx(trans_a, trans_b, ACL_TRANS_N, M, N, K, &alpha, a, WITHOUT_GAPS, type, b, WITHOUT_GAPS,
                           type, &beta, c, WITHOUT_GAPS, sum, ACL_COMPUTE_HIGH_PRECISION, NULL));
    }
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            TRUE_OR_EXIT(get(c, sum, i * N + j) == expected(trans_a, trans_b, i, j));
        }
    }
}

static void vectors(void)
{
    aclFloat16 a[2] = {0x3C00, 0x4000};  /* 1 and 2 */
    aclFloat16 x[2] = {0x4200, 0x4400};  /* 3 and 4 */
    aclFloat16 y[1] = {0x4500};          /* 5 */
    aclFloat16 one = 0x3C00;
    int8_t bytes[4] = {-128, -128, 127, 1};
    int8_t by[2] = {-128, -128};
    int32_t sums[2] = {1, 2};
    int32_t factor = 1;
    MUST(aclblasHgemv(ACL_TRANS_N, 1, 2, &one, a, -1, x, -1, &one, y, -1, ACL_COMPUTE_HIGH_PRECISION, NULL));
    TRUE_OR_EXIT(aclFloat16ToFloat(y[0]) == 16.0F);
    MUST(aclblasS8gemv(ACL_TRANS_T, 2, 2, &factor, bytes, -1, by, -1, &factor, sums, -1, ACL_COMPUTE_HIGH_PRECISION,
                       NULL));
    TRUE_OR_EXIT(sums[0] == 16384 - 16256 + 1 && sums[1] == 16384 - 128 + 2);
}

static void refusals(void)
{
    float one = 1.0F;
    aclopHandle *handle = NULL;
    TRUE_OR_EXIT(aclblasGemmEx(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, 1, 1, 1, NULL, &one, -1, ACL_FLOAT, &one, -1,
                               ACL_FLOAT, &one, &one, -1, ACL_FLOAT, ACL_COMPUTE_HIGH_PRECISION,
                               NULL) == ACL_ERROR_INVALID_PARAM);
    TRUE_OR_EXIT(strstr(aclGetRecentErrMsg(), "alpha") != NULL);
    TRUE_OR_EXIT(aclblasGemmEx(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, 1, 1, 0, &one, &one, -1, ACL_FLOAT, &one, -1,
                               ACL_FLOAT, &one, &one, -1, ACL_FLOAT, ACL_COMPUTE_HIGH_PRECISION,
                               NULL) == ACL_ERROR_INVALID_PARAM);
    TRUE_OR_EXIT(aclblasGemmEx(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, 1, 1, 1, &one, &one, 1, ACL_FLOAT, &one, -1,
                               ACL_FLOAT, &one, &one, -1, ACL_FLOAT, ACL_COMPUTE_HIGH_PRECISION,
                               NULL) == ACL_ERROR_INVALID_PARAM);
    TRUE_OR_EXIT(strstr(aclGetRecentErrMsg(), "-1") != NULL);
    TRUE_OR_EXIT(aclblasCreateHandleForHgemm(ACL_TRANS_NZ, ACL_TRANS_N, ACL_TRANS_N, 16, 16, 16,
                                             ACL_COMPUTE_HIGH_PRECISION, &handle) == ACL_ERROR_API_NOT_SUPPORT);
    TRUE_OR_EXIT(aclblasCreateHandleForGemmEx(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, 1, 1, 1, ACL_DOUBLE, ACL_DOUBLE,
                                              ACL_DOUBLE, ACL_COMPUTE_HIGH_PRECISION,
                                              &handle) == ACL_ERROR_INVALID_PARAM);
    TRUE_OR_EXIT(aclblasCreateHandleForGemmEx(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, 1, 1, 1, ACL_INT8, ACL_FLOAT16,
                                              ACL_FLOAT, ACL_COMPUTE_HIGH_PRECISION,
                                              &handle) == ACL_ERROR_OP_ATTR_NOT_MATCH);
    TRUE_OR_EXIT(aclblasCreateHandleForS8gemv(ACL_TRANS_N, 2, 2, ACL_COMPUTE_LOW_PRECISION, &handle) ==
                 ACL_ERROR_INVALID_PARAM);
}

int main(int argc, char **argv)
{
    const aclDataType types[][2] = {{ACL_FLOAT16, ACL_FLOAT16},
                                    {ACL_FLOAT16, ACL_FLOAT},
                                    {ACL_FLOAT, ACL_FLOAT},
                                    {ACL_INT8, ACL_FLOAT},
                                    {ACL_INT8, ACL_INT32}};
    MUST(aclInit(argc > 1 ? argv[1] : NULL));
    MUST(aclrtSetDevice(0));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        for (int trans = 0; trans < 4; trans++) {
            product(types[i][0], types[i][1], (aclTransType)(trans & 1), (aclTransType)(trans >> 1), trans == 3);
        }
    }
    vectors();
    refusals();
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return 0;
}
