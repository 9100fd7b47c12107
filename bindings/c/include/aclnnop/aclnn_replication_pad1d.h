#ifndef OPSCOPE_ACLNN_REPLICATION_PAD1D_H
#define OPSCOPE_ACLNN_REPLICATION_PAD1D_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self with the outermost entries of its last axis repeated */
ACL_FUNC_VISIBILITY aclnnStatus aclnnReplicationPad1dGetWorkspaceSize(const aclTensor *self,
        const aclIntArray *padding, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnReplicationPad1d(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
