#ifndef OPSCOPE_ACLNN_SOFTMAX_CROSS_ENTROPY_WITH_LOGITS_H
#define OPSCOPE_ACLNN_SOFTMAX_CROSS_ENTROPY_WITH_LOGITS_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* - the sum of labels * log(softmax(features)) for each row, and softmax(features) - labels */
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftmaxCrossEntropyWithLogitsGetWorkspaceSize(
        const aclTensor *features, const aclTensor *labels, aclTensor *loss, aclTensor *backprop,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnSoftmaxCrossEntropyWithLogits(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
