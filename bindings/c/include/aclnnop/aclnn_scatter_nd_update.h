#ifndef OPSCOPE_ACLNN_SCATTER_ND_UPDATE_H
#define OPSCOPE_ACLNN_SCATTER_ND_UPDATE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* varRef with updates at the places whose coordinates are the last axis of indices */
ACL_FUNC_VISIBILITY aclnnStatus aclnnScatterNdUpdateGetWorkspaceSize(aclTensor *varRef,
        const aclTensor *indices, const aclTensor *updates, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnScatterNdUpdate(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
