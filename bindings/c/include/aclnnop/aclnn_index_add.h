#ifndef OPSCOPE_ACLNN_INDEX_ADD_H
#define OPSCOPE_ACLNN_INDEX_ADD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self plus alpha * source at the places of index in axis dim */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIndexAddGetWorkspaceSize(const aclTensor *self, int64_t dim,
        const aclTensor *index, const aclTensor *source, const aclScalar *alpha, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnIndexAdd(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
