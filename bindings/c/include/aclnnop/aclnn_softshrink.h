#ifndef OPSCOPE_ACLNN_SOFTSHRINK_H
#define OPSCOPE_ACLNN_SOFTSHRINK_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self, moved by lambd towards 0, but 0 from -lambd to lambd */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftshrinkGetWorkspaceSize(const aclTensor *self,
        const aclScalar *lambd, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftshrink(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
