#ifndef OPSCOPE_ACLNN_DROPOUT_H
#define OPSCOPE_ACLNN_DROPOUT_H

/* Made from the table of operators, which crates/acl holds. */

#include "../aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* input, or zeros if p is 1; nothing that random numbers decide */
ACL_FUNC_VISIBILITY aclnnStatus aclnnDropoutGetWorkspaceSize(const aclTensor *input, double p,
        bool train, int64_t seed, int64_t offset, aclTensor *out, aclTensor *maskOut,
        uint64_t *workspaceSize, aclOpExecutor **executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnDropout(void *workspace, uint64_t workspaceSize,
        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
