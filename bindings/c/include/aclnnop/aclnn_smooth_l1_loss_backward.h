#ifndef OPSCOPE_ACLNN_SMOOTH_L1_LOSS_BACKWARD_H
#define OPSCOPE_ACLNN_SMOOTH_L1_LOSS_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* (self - target) / beta, not beyond -1 and 1, times gradOut, divided by their number for reduction 1 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSmoothL1LossBackwardGetWorkspaceSize(const aclTensor *gradOut,
        const aclTensor *self, const aclTensor *target, int64_t reduction, float beta,
        aclTensor *gradInput, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSmoothL1LossBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
