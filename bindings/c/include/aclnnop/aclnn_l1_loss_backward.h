#ifndef OPSCOPE_ACLNN_L1_LOSS_BACKWARD_H
#define OPSCOPE_ACLNN_L1_LOSS_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the sign of self - target, times gradOutput, divided by their number for reduction 1 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnL1LossBackwardGetWorkspaceSize(const aclTensor *gradOutput,
        const aclTensor *self, const aclTensor *target, int64_t reduction, aclTensor *gradInput,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnL1LossBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
