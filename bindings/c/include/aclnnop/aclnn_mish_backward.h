#ifndef OPSCOPE_ACLNN_MISH_BACKWARD_H
#define OPSCOPE_ACLNN_MISH_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradOutput * the slope of mish at self */
ACL_FUNC_VISIBILITY aclnnStatus aclnnMishBackwardGetWorkspaceSize(const aclTensor *gradOutput,
        const aclTensor *self, aclTensor *gradInput, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnMishBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
