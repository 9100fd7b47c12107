#ifndef OPSCOPE_ACLNN_VAR_MEAN_H
#define OPSCOPE_ACLNN_VAR_MEAN_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* variance and mean over dim */
ACL_FUNC_VISIBILITY aclnnStatus aclnnVarMeanGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *dim, int64_t correction, bool keepdim, aclTensor *varOut,
        aclTensor *meanOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnVarMean(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
