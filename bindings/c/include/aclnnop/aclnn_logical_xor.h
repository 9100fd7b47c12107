#ifndef OPSCOPE_ACLNN_LOGICAL_XOR_H
#define OPSCOPE_ACLNN_LOGICAL_XOR_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* whether one alone is other than 0 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLogicalXorGetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLogicalXor(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
