#ifndef OPSCOPE_ACLNN_MAX_DIM_H
#define OPSCOPE_ACLNN_MAX_DIM_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the largest element along dim, and where it is first */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaxDimGetWorkspaceSize(const aclTensor *self, int64_t dim,
        bool keepdim, aclTensor *out, aclTensor *indices, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMaxDim(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
