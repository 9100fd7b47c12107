#ifndef OPSCOPE_ACLNN_SWISH_BACKWARD_H
#define OPSCOPE_ACLNN_SWISH_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradOutput * the slope of self * sigmoid(betaOptional * self); without it 1 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSwishBackwardGetWorkspaceSize(const aclTensor *gradOutput,
        const aclTensor *self, const aclScalar *betaOptional, aclTensor *gradInput,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSwishBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
