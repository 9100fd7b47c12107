#ifndef OPSCOPE_ACLNN_MAX_POOL3D_WITH_ARGMAX_BACKWARD_H
#define OPSCOPE_ACLNN_MAX_POOL3D_WITH_ARGMAX_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the gradient of aclnnMaxPool3dWithArgmax, which goes to the places of indices */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaxPool3dWithArgmaxBackwardGetWorkspaceSize(
        const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices,
        const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,
        const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaxPool3dWithArgmaxBackward(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
