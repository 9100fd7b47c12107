#ifndef OPSCOPE_ACLNN_BATCH_NORM_H
#define OPSCOPE_ACLNN_BATCH_NORM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* (input - mean) * invstd * weight + bias for each channel, of the batch in training, else of the running statistics, which training moves by momentum; without training saveMean and saveInvstd get 0 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnBatchNormGetWorkspaceSize(const aclTensor *input,
        const aclTensor *weight, const aclTensor *bias, aclTensor *runningMean,
        aclTensor *runningVar, bool training, double momentum, double eps, aclTensor *output,
        aclTensor *saveMean, aclTensor *saveInvstd, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnBatchNorm(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
