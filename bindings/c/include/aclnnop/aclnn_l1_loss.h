#ifndef OPSCOPE_ACLNN_L1_LOSS_H
#define OPSCOPE_ACLNN_L1_LOSS_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the absolute value of self - target; reduction 1 gives their mean, 2 their sum */
ACL_FUNC_VISIBILITY aclnnStatus aclnnL1LossGetWorkspaceSize(const aclTensor *self,
        const aclTensor *target, int64_t reduction, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnL1Loss(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
