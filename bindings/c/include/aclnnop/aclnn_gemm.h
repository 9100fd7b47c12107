#ifndef OPSCOPE_ACLNN_GEMM_H
#define OPSCOPE_ACLNN_GEMM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* alpha * (A @ B) + beta * C, A and B transposed where transA and transB are not 0 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGemmGetWorkspaceSize(const aclTensor *A, const aclTensor *B,
        const aclTensor *C, float alpha, float beta, int64_t transA, int64_t transB, aclTensor *out,
        int8_t cubeMathType, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGemm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
