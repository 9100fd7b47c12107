#ifndef OPSCOPE_ACLNN_LOGICAL_AND_H
#define OPSCOPE_ACLNN_LOGICAL_AND_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* whether both are other than 0 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLogicalAndGetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLogicalAnd(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* whether both are other than 0 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceLogicalAndGetWorkspaceSize(aclTensor *selfRef,
        const aclTensor *other, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceLogicalAnd(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
