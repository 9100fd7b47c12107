#ifndef OPSCOPE_ACLNN_LOG10_H
#define OPSCOPE_ACLNN_LOG10_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the logarithm to the base of 10 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLog10GetWorkspaceSize(const aclTensor *self, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLog10(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the logarithm to the base of 10 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceLog10GetWorkspaceSize(aclTensor *selfRef,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceLog10(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
