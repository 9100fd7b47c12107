#ifndef OPSCOPE_ACLNN_BATCH_NORM_ELEMT_H
#define OPSCOPE_ACLNN_BATCH_NORM_ELEMT_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* (input - mean) * invstd * weight + bias for each channel */
ACL_FUNC_VISIBILITY aclnnStatus aclnnBatchNormElemtGetWorkspaceSize(const aclTensor *input,
        const aclTensor *weight, const aclTensor *bias, const aclTensor *mean,
        const aclTensor *invstd, double eps, aclTensor *output, uint64_t *workspaceSize,
        aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnBatchNormElemt(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
