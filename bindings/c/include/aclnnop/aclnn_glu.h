#ifndef OPSCOPE_ACLNN_GLU_H
#define OPSCOPE_ACLNN_GLU_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the first half of self along dim * sigmoid(the second) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnGluGetWorkspaceSize(const aclTensor *self, int64_t dim,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnGlu(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
