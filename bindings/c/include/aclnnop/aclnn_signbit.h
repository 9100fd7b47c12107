#ifndef OPSCOPE_ACLNN_SIGNBIT_H
#define OPSCOPE_ACLNN_SIGNBIT_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* whether self has a minus sign */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSignbitGetWorkspaceSize(const aclTensor *self, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSignbit(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
