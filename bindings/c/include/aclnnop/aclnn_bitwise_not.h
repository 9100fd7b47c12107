#ifndef OPSCOPE_ACLNN_BITWISE_NOT_H
#define OPSCOPE_ACLNN_BITWISE_NOT_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the bits that self has not */
ACL_FUNC_VISIBILITY aclnnStatus aclnnBitwiseNotGetWorkspaceSize(const aclTensor *self,
        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnBitwiseNot(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
