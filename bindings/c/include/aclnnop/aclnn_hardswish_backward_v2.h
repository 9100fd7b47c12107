#ifndef OPSCOPE_ACLNN_HARDSWISH_BACKWARD_V2_H
#define OPSCOPE_ACLNN_HARDSWISH_BACKWARD_V2_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradOutput * (self / 3 + 1/2) for self between -3 and 3, 0 up to -3 and gradOutput from 3 on */
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardswishBackwardV2GetWorkspaceSize(
        const aclTensor *gradOutput, const aclTensor *self, aclTensor *out, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnHardswishBackwardV2(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
