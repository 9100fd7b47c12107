#ifndef OPSCOPE_ACLNN_TANH_BACKWARD_H
#define OPSCOPE_ACLNN_TANH_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradOutput * (1 - output * output) */
ACL_FUNC_VISIBILITY aclnnStatus aclnnTanhBackwardGetWorkspaceSize(const aclTensor *gradOutput,
        const aclTensor *output, aclTensor *gradInput, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnTanhBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
