#ifndef OPSCOPE_ACLNN_BINARY_CROSS_ENTROPY_WITH_LOGITS_H
#define OPSCOPE_ACLNN_BINARY_CROSS_ENTROPY_WITH_LOGITS_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* binary cross entropy of sigmoid(self), with target weighed by posWeightOptional; reduction 1 gives their mean, 2 their sum */
ACL_FUNC_VISIBILITY aclnnStatus aclnnBinaryCrossEntropyWithLogitsGetWorkspaceSize(
        const aclTensor *self, const aclTensor *target, const aclTensor *weightOptional,
        const aclTensor *posWeightOptional, int64_t reduction, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnBinaryCrossEntropyWithLogits(void *workspace,
        uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
