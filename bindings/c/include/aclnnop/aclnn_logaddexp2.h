#ifndef OPSCOPE_ACLNN_LOGADDEXP2_H
#define OPSCOPE_ACLNN_LOGADDEXP2_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* log2(2^self + 2^other) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnLogAddExp2GetWorkspaceSize(const aclTensor *self,
        const aclTensor *other, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLogAddExp2(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
