#ifndef OPSCOPE_ACLNN_ADAPTIVE_AVG_POOL2D_BACKWARD_H
#define OPSCOPE_ACLNN_ADAPTIVE_AVG_POOL2D_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the gradient of aclnnAdaptiveAvgPool2d */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAdaptiveAvgPool2dBackwardGetWorkspaceSize(
        const aclTensor *gradOutput, const aclTensor *self, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAdaptiveAvgPool2dBackward(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
