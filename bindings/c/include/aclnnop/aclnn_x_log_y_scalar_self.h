#ifndef OPSCOPE_ACLNN_X_LOG_Y_SCALAR_SELF_H
#define OPSCOPE_ACLNN_X_LOG_Y_SCALAR_SELF_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self * log(other); 0 where self is */
ACL_FUNC_VISIBILITY aclnnStatus aclnnXLogYScalarSelfGetWorkspaceSize(const aclScalar *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnXLogYScalarSelf(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
