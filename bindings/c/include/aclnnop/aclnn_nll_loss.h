#ifndef OPSCOPE_ACLNN_NLL_LOSS_H
#define OPSCOPE_ACLNN_NLL_LOSS_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -weight[target] * self[target] for each sample, 0 where target is ignoreIndex; reduction 1 gives their sum divided by that of the weights, 2 their sum; totalWeightOut is 0 for reduction 0 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnNLLLossGetWorkspaceSize(const aclTensor *self,
        const aclTensor *target, const aclTensor *weight, int64_t reduction, int64_t ignoreIndex,
        aclTensor *out, aclTensor *totalWeightOut, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnNLLLoss(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
