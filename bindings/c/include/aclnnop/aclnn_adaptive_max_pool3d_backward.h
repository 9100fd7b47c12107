#ifndef OPSCOPE_ACLNN_ADAPTIVE_MAX_POOL3D_BACKWARD_H
#define OPSCOPE_ACLNN_ADAPTIVE_MAX_POOL3D_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the gradient of aclnnAdaptiveMaxPool3d, which goes to the places of indices */
ACL_FUNC_VISIBILITY aclnnStatus aclnnAdaptiveMaxPool3dBackwardGetWorkspaceSize(
        const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices,
        aclTensor *gradInput, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnAdaptiveMaxPool3dBackward(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
