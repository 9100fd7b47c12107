#ifndef OPSCOPE_ACLNN_EXPM1_H
#define OPSCOPE_ACLNN_EXPM1_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* e to the power of self, minus 1 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnExpm1GetWorkspaceSize(const aclTensor *self, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnExpm1(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* e to the power of self, minus 1 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceExpm1GetWorkspaceSize(aclTensor *selfRef,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceExpm1(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
