#ifndef OPSCOPE_ACLNN_MSE_LOSS_BACKWARD_H
#define OPSCOPE_ACLNN_MSE_LOSS_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 2 * (self - target) * gradOutput, divided by their number for reduction 1 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMseLossBackwardGetWorkspaceSize(const aclTensor *gradOutput,
        const aclTensor *self, const aclTensor *target, int64_t reduction, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMseLossBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
