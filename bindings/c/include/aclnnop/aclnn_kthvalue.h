#ifndef OPSCOPE_ACLNN_KTHVALUE_H
#define OPSCOPE_ACLNN_KTHVALUE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the k-th smallest entry of axis dim, counted from 1, with its place */
ACL_FUNC_VISIBILITY aclnnStatus aclnnKthvalueGetWorkspaceSize(const aclTensor *self, int64_t k,
        int64_t dim, bool keepdim, aclTensor *valuesOut, aclTensor *indicesOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnKthvalue(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
