#ifndef OPSCOPE_ACLNN_SCATTER_H
#define OPSCOPE_ACLNN_SCATTER_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self with src at the places of index in axis dim; reduce 0 replaces, 1 adds, 2 multiplies */
ACL_FUNC_VISIBILITY aclnnStatus aclnnScatterGetWorkspaceSize(const aclTensor *self, int64_t dim,
        const aclTensor *index, const aclTensor *src, int64_t reduce, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnScatter(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self with src at the places of index in axis dim; reduce 0 replaces, 1 adds, 2 multiplies */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceScatterGetWorkspaceSize(aclTensor *selfRef, int64_t dim,
        const aclTensor *index, const aclTensor *src, int64_t reduce, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceScatter(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self with value at the places of index in axis dim; reduce 0 replaces, 1 adds, 2 multiplies */
ACL_FUNC_VISIBILITY aclnnStatus aclnnScatterValueGetWorkspaceSize(const aclTensor *self,
        int64_t dim, const aclTensor *index, const aclScalar *value, int64_t reduce, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnScatterValue(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

/* self with value at the places of index in axis dim; reduce 0 replaces, 1 adds, 2 multiplies */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceScatterValueGetWorkspaceSize(aclTensor *selfRef,
        int64_t dim, const aclTensor *index, const aclScalar *value, int64_t reduce,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnInplaceScatterValue(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
