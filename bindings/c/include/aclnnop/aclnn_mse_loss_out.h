#ifndef OPSCOPE_ACLNN_MSE_LOSS_OUT_H
#define OPSCOPE_ACLNN_MSE_LOSS_OUT_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* (self - target)^2; reduction 1 gives their mean over the first axis, 2 their sum over it */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMseLossOutGetWorkspaceSize(const aclTensor *self,
        const aclTensor *target, int64_t reduction, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMseLossOut(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
