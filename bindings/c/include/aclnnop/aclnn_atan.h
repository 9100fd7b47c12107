#ifndef OPSCOPE_ACLNN_ATAN_H
#define OPSCOPE_ACLNN_ATAN_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the angle of this tangent */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAtanGetWorkspaceSize(const aclTensor *input, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAtan(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* the angle of this tangent */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAtanGetWorkspaceSize(aclTensor *inputRef,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceAtan(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
