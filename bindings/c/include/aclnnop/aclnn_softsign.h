#ifndef OPSCOPE_ACLNN_SOFTSIGN_H
#define OPSCOPE_ACLNN_SOFTSIGN_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self / (1 + the absolute value of self) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftsignGetWorkspaceSize(const aclTensor *self, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftsign(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
