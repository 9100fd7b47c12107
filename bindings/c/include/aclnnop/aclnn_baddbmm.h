#ifndef OPSCOPE_ACLNN_BADDBMM_H
#define OPSCOPE_ACLNN_BADDBMM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* beta * self + alpha * (batch1 @ batch2) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnBaddbmmGetWorkspaceSize(const aclTensor *self,
        const aclTensor *batch1, const aclTensor *batch2, const aclScalar *beta,
        const aclScalar *alpha, aclTensor *out, int8_t cubeMathType, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnBaddbmm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* beta * self + alpha * (batch1 @ batch2) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceBaddbmmGetWorkspaceSize(aclTensor *selfRef,
        const aclTensor *batch1, const aclTensor *batch2, const aclScalar *beta,
        const aclScalar *alpha, int8_t cubeMathType, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceBaddbmm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
