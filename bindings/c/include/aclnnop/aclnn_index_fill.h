#ifndef OPSCOPE_ACLNN_INDEX_FILL_H
#define OPSCOPE_ACLNN_INDEX_FILL_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self with value at the places of index in axis dim; places beyond it are left out */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIndexFillGetWorkspaceSize(const aclTensor *self, int64_t dim,
        const aclTensor *index, const aclScalar *value, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnIndexFill(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self with value at the places of index in axis dim; places beyond it are left out */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceIndexFillGetWorkspaceSize(aclTensor *selfRef,
        int64_t dim, const aclTensor *index, const aclScalar *value, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceIndexFill(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
