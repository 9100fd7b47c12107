#ifndef OPSCOPE_ACLNN_FAST_GELU_BACKWARD_H
#define OPSCOPE_ACLNN_FAST_GELU_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradOutput * the slope of self * sigmoid(1.702 * self) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFastGeluBackwardGetWorkspaceSize(const aclTensor *gradOutput,
        const aclTensor *self, aclTensor *gradInput, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFastGeluBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
