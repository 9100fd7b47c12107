#ifndef OPSCOPE_ACLNN_ADDMM_H
#define OPSCOPE_ACLNN_ADDMM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* beta * self + alpha * (mat1 @ mat2) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddmmGetWorkspaceSize(const aclTensor *self,
        const aclTensor *mat1, const aclTensor *mat2, const aclScalar *beta, const aclScalar *alpha,
        aclTensor *out, int8_t cubeMathType, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddmm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* beta * self + alpha * (mat1 @ mat2) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAddmmGetWorkspaceSize(aclTensor *selfRef,
        const aclTensor *mat1, const aclTensor *mat2, const aclScalar *beta, const aclScalar *alpha,
        int8_t cubeMathType, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAddmm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
