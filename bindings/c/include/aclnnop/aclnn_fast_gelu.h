#ifndef OPSCOPE_ACLNN_FAST_GELU_H
#define OPSCOPE_ACLNN_FAST_GELU_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self * sigmoid(1.702 * self) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFastGeluGetWorkspaceSize(const aclTensor *self, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFastGelu(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
