#ifndef OPSCOPE_ACLNN_BINARY_CROSS_ENTROPY_H
#define OPSCOPE_ACLNN_BINARY_CROSS_ENTROPY_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -weight * (target * log(self) + (1 - target) * log(1 - self)), with logarithms not below -100; reduction 1 gives their mean, 2 their sum */
ACL_FUNC_VISIBILITY aclnnStatus aclnnBinaryCrossEntropyGetWorkspaceSize(const aclTensor *self,
        const aclTensor *target, const aclTensor *weight, int64_t reduction, aclTensor *out,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnBinaryCrossEntropy(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
