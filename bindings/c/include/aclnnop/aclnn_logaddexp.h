#ifndef OPSCOPE_ACLNN_LOGADDEXP_H
#define OPSCOPE_ACLNN_LOGADDEXP_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* log(e^self + e^other) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLogAddExpGetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLogAddExp(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
