#ifndef OPSCOPE_ACLNN_NLL_LOSS2D_H
#define OPSCOPE_ACLNN_NLL_LOSS2D_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aclnnNLLLoss for each place of a picture, with the classes along the second axis */
ACL_FUNC_VISIBILITY aclnnStatus aclnnNLLLoss2dGetWorkspaceSize(const aclTensor *self,
        const aclTensor *target, const aclTensor *weight, int64_t reduction, int64_t ignoreIndex,
        aclTensor *out, aclTensor *totalWeightOut, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnNLLLoss2d(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
