#ifndef OPSCOPE_ACLNN_ADAPTIVE_AVG_POOL3D_BACKWARD_H
#define OPSCOPE_ACLNN_ADAPTIVE_AVG_POOL3D_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the gradient of aclnnAdaptiveAvgPool3d */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(
        const aclTensor *gradOutput, const aclTensor *self, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAdaptiveAvgPool3dBackward(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
