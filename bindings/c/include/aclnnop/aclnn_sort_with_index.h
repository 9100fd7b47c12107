#ifndef OPSCOPE_ACLNN_SORT_WITH_INDEX_H
#define OPSCOPE_ACLNN_SORT_WITH_INDEX_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x in order along axis, and index in the same one */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSortWithIndexGetWorkspaceSize(const aclTensor *x,
        const aclTensor *index, int64_t axis, bool descending, bool stable, aclTensor *valuesOut,
        aclTensor *indicesOut, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSortWithIndex(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
