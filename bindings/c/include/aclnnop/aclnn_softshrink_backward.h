#ifndef OPSCOPE_ACLNN_SOFTSHRINK_BACKWARD_H
#define OPSCOPE_ACLNN_SOFTSHRINK_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradOutput, but 0 where self is from -lambda to lambda */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftshrinkBackwardGetWorkspaceSize(
        const aclTensor *gradOutput, const aclTensor *self, const aclScalar *lambda,
        aclTensor *gradInput, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftshrinkBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
