#ifndef OPSCOPE_ACLNN_KL_DIV_H
#define OPSCOPE_ACLNN_KL_DIV_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* target * (log(target) - self), or e^target * (target - self) if logTarget is true; reduction 1 gives their mean, 2 their sum, 3 their sum divided by the first extent of self */
ACL_FUNC_VISIBILITY aclnnStatus aclnnKlDivGetWorkspaceSize(const aclTensor *self,
        const aclTensor *target, int64_t reduction, bool logTarget, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnKlDiv(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
