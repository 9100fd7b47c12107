#ifndef OPSCOPE_ACLNN_AVGPOOL3D_BACKWARD_H
#define OPSCOPE_ACLNN_AVGPOOL3D_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the gradient of aclnnAvgPool3d */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAvgPool3dBackwardGetWorkspaceSize(const aclTensor *gradOutput,
        const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride,
        const aclIntArray *padding, bool ceilMode, bool countIncludePad, int64_t divisorOverride,
        aclTensor *output, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAvgPool3dBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
