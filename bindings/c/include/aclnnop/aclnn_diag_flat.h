#ifndef OPSCOPE_ACLNN_DIAG_FLAT_H
#define OPSCOPE_ACLNN_DIAG_FLAT_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a matrix with the elements of self on a diagonal */
ACL_FUNC_VISIBILITY aclnnStatus aclnnDiagFlatGetWorkspaceSize(const aclTensor *self,
        int64_t diagonal, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnDiagFlat(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
