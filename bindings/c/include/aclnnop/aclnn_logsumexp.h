#ifndef OPSCOPE_ACLNN_LOGSUMEXP_H
#define OPSCOPE_ACLNN_LOGSUMEXP_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the logarithm of the sum over dim of e to the power of self */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLogSumExpGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *dim, bool keepDim, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLogSumExp(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
