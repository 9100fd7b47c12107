#ifndef OPSCOPE_ACLNN_TOPK_H
#define OPSCOPE_ACLNN_TOPK_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the k largest or smallest entries of axis dim, with their places */
ACL_FUNC_VISIBILITY aclnnStatus aclnnTopkGetWorkspaceSize(const aclTensor *self, int64_t k,
        int64_t dim, bool largest, bool sorted, aclTensor *valuesOut, aclTensor *indicesOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnTopk(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
