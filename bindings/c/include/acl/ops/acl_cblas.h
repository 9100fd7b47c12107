#ifndef OPSCOPE_ACL_OPS_CBLAS_H
#define OPSCOPE_ACL_OPS_CBLAS_H

/*
 * Products of matrices: c = alpha * a b + beta * c, and of a matrix and a vector: y = alpha * a x + beta * y.
 *
 * Rows lie one after the other: leading dimensions and increments are -1. a has m rows and k columns (for a vector m
 * and n) after transposing; alpha and beta are addresses of numbers of the result's type. Types that go together:
 * float16 with float16 or float32, float32 with float32, int8 with int32 or float32.
 */

#include "acl/acl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum aclTransType {
    ACL_TRANS_N = 0,
    ACL_TRANS_T = 1,
    ACL_TRANS_NZ = 2, /* in blocks: not supported */
    ACL_TRANS_NZ_T = 3
} aclTransType;

typedef enum aclComputeType {
    ACL_COMPUTE_HIGH_PRECISION = 0, /* the only one that is accepted */
    ACL_COMPUTE_LOW_PRECISION = 1
} aclComputeType;

ACL_FUNC_VISIBILITY aclError aclblasGemvEx(aclTransType trans_a, int m, int n, const void *alpha, const void *a,
                                           int lda, aclDataType data_type_a, const void *x, int incx,
                                           aclDataType data_type_x, const void *beta, void *y, int incy,
                                           aclDataType data_type_y, aclComputeType type, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclblasHgemv(aclTransType trans_a, int m, int n, const aclFloat16 *alpha,
                                          const aclFloat16 *a, int lda, const aclFloat16 *x, int incx,
                                          const aclFloat16 *beta, aclFloat16 *y, int incy, aclComputeType type,
                                          aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclblasS8gemv(aclTransType trans_a, int m, int n, const int32_t *alpha, const int8_t *a,
                                           int lda, const int8_t *x, int incx, const int32_t *beta, int32_t *y,
                                           int incy, aclComputeType type, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclblasGemmEx(aclTransType trans_a, aclTransType trans_b, aclTransType trans_c, int m,
                                           int n, int k, const void *alpha, const void *matrix_a, int lda,
                                           aclDataType data_type_a, const void *matrix_b, int ldb,
                                           aclDataType data_type_b, const void *beta, void *matrix_c, int ldc,
                                           aclDataType data_type_c, aclComputeType type, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclblasHgemm(aclTransType trans_a, aclTransType trans_b, aclTransType trans_c, int m,
                                          int n, int k, const aclFloat16 *alpha, const aclFloat16 *matrix_a, int lda,
                                          const aclFloat16 *matrix_b, int ldb, const aclFloat16 *beta,
                                          aclFloat16 *matrix_c, int ldc, aclComputeType type, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclblasS8gemm(aclTransType trans_a, aclTransType trans_b, aclTransType trans_c, int m,
                                           int n, int k, const int32_t *alpha, const int8_t *matrix_a, int lda,
                                           const int8_t *matrix_b, int ldb, const int32_t *beta, int32_t *matrix_c,
                                           int ldc, aclComputeType type, aclrtStream stream);

/* Operators for aclopExecWithHandle, which read a, b, c, alpha and beta (a, x, y, alpha and beta) and write c (y). */

ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForGemvEx(aclTransType trans_a, int m, int n, aclDataType data_type_a,
                                                          aclDataType data_type_x, aclDataType data_type_y,
                                                          aclComputeType type, aclopHandle **handle);
ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForHgemv(aclTransType trans_a, int m, int n, aclComputeType type,
                                                         aclopHandle **handle);
ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForS8gemv(aclTransType trans_a, int m, int n, aclComputeType type,
                                                          aclopHandle **handle);
ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForGemmEx(aclTransType trans_a, aclTransType trans_b,
                                                          aclTransType trans_c, int m, int n, int k,
                                                          aclDataType data_type_a, aclDataType data_type_b,
                                                          aclDataType data_type_c, aclComputeType type,
                                                          aclopHandle **handle);
ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForHgemm(aclTransType trans_a, aclTransType trans_b,
                                                         aclTransType trans_c, int m, int n, int k, aclComputeType type,
                                                         aclopHandle **handle);
ACL_FUNC_VISIBILITY aclError aclblasCreateHandleForS8gemm(aclTransType trans_a, aclTransType trans_b,
                                                          aclTransType trans_c, int m, int n, int k,
                                                          aclComputeType type, aclopHandle **handle);

#ifdef __cplusplus
}
#endif

#endif
