#ifndef OPSCOPE_ACLNN_ACOSH_H
#define OPSCOPE_ACLNN_ACOSH_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the inverse of the hyperbolic cosine */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAcoshGetWorkspaceSize(const aclTensor *self, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAcosh(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the inverse of the hyperbolic cosine */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAcoshGetWorkspaceSize(aclTensor *selfRef,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAcosh(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
