#ifndef OPSCOPE_ACLNN_SCALED_MASKED_SOFTMAX_H
#define OPSCOPE_ACLNN_SCALED_MASKED_SOFTMAX_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax(scale * x) along the last axis, with -10000 where mask is true */
ACL_FUNC_VISIBILITY aclnnStatus aclnnScaledMaskedSoftmaxGetWorkspaceSize(const aclTensor *x,
        const aclTensor *mask, double scale, bool fixedTriuMask, aclTensor *y,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnScaledMaskedSoftmax(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
