#ifndef OPSCOPE_ACLNN_SQRT_BACKWARD_H
#define OPSCOPE_ACLNN_SQRT_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dy / (2 * y) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSqrtBackwardGetWorkspaceSize(const aclTensor *y,
        const aclTensor *dy, aclTensor *z, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSqrtBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
