#ifndef OPSCOPE_ACLNN_ADDMV_H
#define OPSCOPE_ACLNN_ADDMV_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* beta * self + alpha * (mat @ vec) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddmvGetWorkspaceSize(const aclTensor *self,
        const aclTensor *mat, const aclTensor *vec, const aclScalar *alpha, const aclScalar *beta,
        aclTensor *out, int8_t cubeMathType, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAddmv(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
