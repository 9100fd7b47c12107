#ifndef OPSCOPE_ACLNN_SMOOTH_L1_LOSS_H
#define OPSCOPE_ACLNN_SMOOTH_L1_LOSS_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* with d the absolute value of self - target: d^2 / (2 * beta) where d is below beta, else d - beta / 2; reduction 1 gives their mean, 2 their sum */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSmoothL1LossGetWorkspaceSize(const aclTensor *self,
        const aclTensor *target, int64_t reduction, float beta, aclTensor *result,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSmoothL1Loss(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
