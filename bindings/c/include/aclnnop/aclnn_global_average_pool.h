#ifndef OPSCOPE_ACLNN_GLOBAL_AVERAGE_POOL_H
#define OPSCOPE_ACLNN_GLOBAL_AVERAGE_POOL_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the mean of each channel */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGlobalAveragePoolGetWorkspaceSize(const aclTensor *self,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGlobalAveragePool(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
