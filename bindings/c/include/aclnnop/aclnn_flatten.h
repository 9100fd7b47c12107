#ifndef OPSCOPE_ACLNN_FLATTEN_H
#define OPSCOPE_ACLNN_FLATTEN_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self as a matrix: axes before axis become its rows */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlattenGetWorkspaceSize(const aclTensor *self, int64_t axis,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFlatten(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
