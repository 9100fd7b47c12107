#ifndef OPSCOPE_ACLNN_CROSS_ENTROPY_LOSS_H
#define OPSCOPE_ACLNN_CROSS_ENTROPY_LOSS_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aclnnNLLLoss of the logarithm of softmax, which logProbOut gets; reductionOptional is mean, sum or none */
ACL_FUNC_VISIBILITY aclnnStatus aclnnCrossEntropyLossGetWorkspaceSize(const aclTensor *input,
        const aclTensor *target, const aclTensor *weightOptional, const char *reductionOptional,
        int64_t ignoreIndex, double labelSmoothing, double lseSquareScaleForZloss, bool returnZloss,
        aclTensor *lossOut, aclTensor *logProbOut, aclTensor *zlossOut, aclTensor *lseForZlossOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnCrossEntropyLoss(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
