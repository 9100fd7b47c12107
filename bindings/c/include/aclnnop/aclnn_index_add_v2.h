#ifndef OPSCOPE_ACLNN_INDEX_ADD_V2_H
#define OPSCOPE_ACLNN_INDEX_ADD_V2_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self plus alpha * source at the places of index in axis dim */
ACL_FUNC_VISIBILITY aclnnStatus aclnnIndexAddV2GetWorkspaceSize(const aclTensor *self, int64_t dim,
        const aclTensor *index, const aclTensor *source, const aclScalar *alpha, int64_t mode,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnIndexAddV2(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
