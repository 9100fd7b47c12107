#ifndef OPSCOPE_ACLNN_SOFTPLUS_BACKWARD_H
#define OPSCOPE_ACLNN_SOFTPLUS_BACKWARD_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradOutput * sigmoid(beta * self); gradOutput where beta * self is above threshold */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftplusBackwardGetWorkspaceSize(const aclTensor *gradOutput,
        const aclTensor *self, const aclScalar *beta, const aclScalar *threshold,
        aclTensor *gradInput, uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftplusBackward(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
