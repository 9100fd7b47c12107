#ifndef OPSCOPE_ACLNN_BATCH_NORM_BACKWARD_H
#define OPSCOPE_ACLNN_BATCH_NORM_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the gradients of aclnnBatchNorm that outputMask asks for; others get 0; without training of the running statistics */
ACL_FUNC_VISIBILITY aclnnStatus aclnnBatchNormBackwardGetWorkspaceSize(const aclTensor *gradOut,
        const aclTensor *input, const aclTensor *weight, const aclTensor *runningMean,
        const aclTensor *runningVar, const aclTensor *saveMean, const aclTensor *saveInvstd,
        bool training, double eps, const aclBoolArray *outputMask, aclTensor *gradInput,
        aclTensor *gradWeight, aclTensor *gradBias, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnBatchNormBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
