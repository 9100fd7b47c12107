#ifndef OPSCOPE_ACLNN_CHANNEL_SHUFFLE_H
#define OPSCOPE_ACLNN_CHANNEL_SHUFFLE_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* self with the channels of its groups taken in turns */
ACL_FUNC_VISIBILITY aclnnStatus aclnnChannelShuffleGetWorkspaceSize(const aclTensor *self,
        int64_t groups, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnChannelShuffle(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
