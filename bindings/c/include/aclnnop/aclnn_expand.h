#ifndef OPSCOPE_ACLNN_EXPAND_H
#define OPSCOPE_ACLNN_EXPAND_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self broadcast to the extents of size; -1 leaves one as it is */
ACL_FUNC_VISIBILITY aclnnStatus aclnnExpandGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *size, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnExpand(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
