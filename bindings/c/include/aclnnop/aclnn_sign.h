#ifndef OPSCOPE_ACLNN_SIGN_H
#define OPSCOPE_ACLNN_SIGN_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -1, 0 or 1 */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSignGetWorkspaceSize(const aclTensor *self, aclTensor *result,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSign(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
