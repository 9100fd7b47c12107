#ifndef OPSCOPE_ACLNN_CUMMIN_H
#define OPSCOPE_ACLNN_CUMMIN_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the smallest entry of axis dim so far, with its last place */
ACL_FUNC_VISIBILITY aclnnStatus aclnnCumminGetWorkspaceSize(const aclTensor *self, int64_t dim,
        aclTensor *valuesOut, aclTensor *indicesOut, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnCummin(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
