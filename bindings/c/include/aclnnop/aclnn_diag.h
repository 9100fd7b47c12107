#ifndef OPSCOPE_ACLNN_DIAG_H
#define OPSCOPE_ACLNN_DIAG_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a matrix with self on a diagonal, or a diagonal of a matrix */
ACL_FUNC_VISIBILITY aclnnStatus aclnnDiagGetWorkspaceSize(const aclTensor *self, int64_t diagonal,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnDiag(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
