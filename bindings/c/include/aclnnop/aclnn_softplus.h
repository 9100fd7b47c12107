#ifndef OPSCOPE_ACLNN_SOFTPLUS_H
#define OPSCOPE_ACLNN_SOFTPLUS_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* log(1 + e^(beta * self)) / beta; self where beta * self is above threshold */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftplusGetWorkspaceSize(const aclTensor *self,
        const aclScalar *beta, const aclScalar *threshold, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftplus(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
