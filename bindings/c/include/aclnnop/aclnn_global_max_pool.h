#ifndef OPSCOPE_ACLNN_GLOBAL_MAX_POOL_H
#define OPSCOPE_ACLNN_GLOBAL_MAX_POOL_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the maximum of each channel */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGlobalMaxPoolGetWorkspaceSize(const aclTensor *self,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGlobalMaxPool(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
